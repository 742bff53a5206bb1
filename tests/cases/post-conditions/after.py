def f():
    x = get()
    check(x)
    return x
