def f():
    a = 2  # the second
    b = 3
