def f():
    return out
