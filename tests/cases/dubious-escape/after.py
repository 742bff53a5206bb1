def f():
    r = '\d'
    a = 2
    b = 3
