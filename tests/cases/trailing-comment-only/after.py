def f():
    a = 1  # noqa
    b = 3
