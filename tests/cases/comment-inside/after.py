def f():
    # one
    # two follows
    a = call(12)
    b = 3
