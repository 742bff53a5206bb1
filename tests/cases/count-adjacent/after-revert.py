def f():
    # a
    log(1)
    log(2)
    log(3)
