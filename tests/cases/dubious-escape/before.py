def f():
    r = '\d'
    a = 1
    b = 3
