def f():
    with open(a) as x, \
            open(b) as y:
        one()
        two(x, y)
    return x and \
        y
