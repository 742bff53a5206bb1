def f():
    x = get()
    return x.value()
