def f():
    a = 1
    # new words
    b = 3
