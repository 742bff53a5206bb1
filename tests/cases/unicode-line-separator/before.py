def f():
    s = '   '; t = ' '
    a = 1
    b = 3
