def f():
    a = x or y
    b = p, q
    c = lambda: 0
    d = 1
