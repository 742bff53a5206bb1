def f():
    b = 0
    # comment
    a = 1
