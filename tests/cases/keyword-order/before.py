def f():
    call(1, b=2, a=3, **kw)
    x = 1
