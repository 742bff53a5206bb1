def f():
    a = 1
    # between
    b = 2
    return b
