def f():
    # why
    a = 2
    # and b
    b = 3
