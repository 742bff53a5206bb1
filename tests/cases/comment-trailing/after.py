def f():
    # the first
    a = 2
    b = 3
