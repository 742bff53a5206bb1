def f():
    # between
    c = 3
    return b
