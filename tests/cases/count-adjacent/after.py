def f():
    # a
    info(1)
    info(2)
    info(3)
