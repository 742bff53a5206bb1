def f():
    with open(a) as x, \
            open(b) as y:
        one()
    return x and \
        y
