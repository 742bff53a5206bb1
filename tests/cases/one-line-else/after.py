def f():
    if x: a()
    else:
        c()
    return 2
