def f():
    start()
    log('x')
    if x:
        one()
        two()
        stop()
    end()
