def f():
    a()

    x()
    b()
