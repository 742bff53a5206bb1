def f():
    if x:
        a()
    return 1
