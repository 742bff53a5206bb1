def f():
    start()
    with lock:
        if x:
            send(msg)
    end()
    start()
    end()
