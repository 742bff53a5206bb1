def f():
    # comment
    a = 1
