def f():
    call(*args)
    call(**kw)
    call(args)
