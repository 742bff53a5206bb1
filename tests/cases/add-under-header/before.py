def f():
    for i in x:  # all
        # comment
        a = 1
