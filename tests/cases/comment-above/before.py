def f():
    # why
    a = 1
    # and b
    b = 3
