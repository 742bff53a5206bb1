def f():
    a()  # one
    # two
    b()
    return 1
