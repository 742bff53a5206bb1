def f():
    if x:
        a()
    elif y:
        b()
