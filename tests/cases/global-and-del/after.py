def f():
    global a, b
    del a[0]
    assert x, 'why'
    yield y
    raise E from None
