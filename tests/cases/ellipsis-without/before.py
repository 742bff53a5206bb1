def f():
    a()
    x.stop()
    b()
    a()
    go()
    b()
