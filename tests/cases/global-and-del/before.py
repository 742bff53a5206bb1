def f():
    global a, b
    del a[0], b
    assert x, 'why'
    yield from y
    raise E from None
