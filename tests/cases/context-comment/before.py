def f():
    a()
    # first part

    b()
