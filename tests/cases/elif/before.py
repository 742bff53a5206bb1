def f():
    if x:
        a()
    elif y:
        b()
    else:
        c()
