def f():
    def inner():
        a = 2
        b = 3
    return inner
