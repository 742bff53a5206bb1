def f():
    if x:
        a()
        last()
        return
    a()
    more()
