def f():
    if x:
        a()
    elif z:
        b()
    else:
        c()
