def f():
    a()

    b()
