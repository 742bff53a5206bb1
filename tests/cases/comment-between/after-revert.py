def f():
    # between
    a = 1
    b = 2
    return b
