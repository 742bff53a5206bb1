def f():
    s = '   '; t = ' '
    a = 2
    b = 3
