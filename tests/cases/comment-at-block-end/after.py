def f():
    if x:
        a()
        # the end of the branch
    b()

    # about the return
    return 1
