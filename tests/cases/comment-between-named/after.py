def f():
    c = 3
    return b
