def f():
    if x:
        a()
    a()
    end()
