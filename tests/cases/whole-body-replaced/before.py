def f():
    # only this
    pass


def g(): pass
