def f():
    start()
    log('x')
    if x:
        one()
        two()
        halt()
    end()
