def f():
    a()

    b()
    c()
