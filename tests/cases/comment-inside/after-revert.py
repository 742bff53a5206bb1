def f():
    # one
    # two follows
    a = call(1, 2)
    b = 3
