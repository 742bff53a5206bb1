def f():
    if x:
        a()
        return
    a()
    more()
