def f():
    a = 1; b = 2  # both
    c = 3
