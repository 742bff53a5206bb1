def f():
    if x:
        return 1
    # the rest
    y = 2  # two
    return y
