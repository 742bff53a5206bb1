def f():
    a = 1
    x = 0
    b = 2
    y = 0
    c = 3
