def f():
    for i in x:
        a()
    else:
        b()
    while y:
        c()
    else:
        d()
