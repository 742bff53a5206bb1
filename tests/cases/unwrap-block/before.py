def f():
    with lock:  # held
        a()  # one
        # two
        b()
    return 1
