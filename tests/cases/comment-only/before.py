def f():
    a = 1
    # old words
    b = 3
