def f():
    for i in x:  # all
        b = 0
        # comment
        a = 1
