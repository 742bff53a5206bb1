def f():
    info(1)
    if x:
        info(2)
    info(3)
