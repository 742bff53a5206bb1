def f():
    a = 12
    b = 3
