def f():
    a = 1  # the first
    b = 3
