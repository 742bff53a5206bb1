def f():
    # the first
    a = 1
    b = 3
