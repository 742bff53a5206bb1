def f():
    b()
    if x:
        a()
    end()
