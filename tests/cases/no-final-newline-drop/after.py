def f():
    a = 1