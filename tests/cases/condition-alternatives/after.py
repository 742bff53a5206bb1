def f():
    a = get()
    check(a)
    return a
