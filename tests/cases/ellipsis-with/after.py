def f():
    start()
    with lock:
        if x:
            send(msg)
    end()
    log(msg)
    start()
    end()
