def f():
    if x:
        a()
        # the end of the branch

    # about the return
    return 1
