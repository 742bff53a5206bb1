def f():
    log(1)
    if x:
        log(2)
    log(3)
