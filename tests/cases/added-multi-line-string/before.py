def f():
    if x:
        a = 1
