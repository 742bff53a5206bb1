def f():
    with lock:
        while True:
            if ready:
                a = 2
                break
