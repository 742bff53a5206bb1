def f():
    # only this
    return 1


def g(): pass
