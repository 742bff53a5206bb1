def f():
    for i in x:
        a()
    else:
        b(1)
    while y:
        c()
    else:
        d(1)
