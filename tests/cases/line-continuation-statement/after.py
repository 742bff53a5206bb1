def f():
    a = 1
    b = 4
    c = 3
