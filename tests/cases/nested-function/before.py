def f():
    def inner():
        a = 1
        b = 3
    return inner
