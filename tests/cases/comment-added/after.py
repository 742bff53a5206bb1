def f():
    a = 1
    # between
    b = 3
