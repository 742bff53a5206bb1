def f():
    a()
    # first part
    x()

    b()
