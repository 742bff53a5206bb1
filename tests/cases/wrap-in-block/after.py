def f():
    with lock:
        a()  # one
        # two
        b()
    return 1
