def f():
    a()
    b()

    c()
    # about the return
    return 1
