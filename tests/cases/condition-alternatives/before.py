def f():
    a = get()
    return a
