def f():
    if x:
        a = 1
        # last words
    b = 2