def f():
    if x:
        return 1
    else:
        # the rest
        y = 2  # two
        return y
