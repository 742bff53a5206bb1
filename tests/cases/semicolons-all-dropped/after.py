def f():
    # both
    c = 3
