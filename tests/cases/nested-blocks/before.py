def f():
    with lock:
        while True:
            if ready:
                a = 1
                break
