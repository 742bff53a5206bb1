def f():
    log(1)  # a
    log(2)
    log(3)
