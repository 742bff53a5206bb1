def f():
    a()
    b()

    # about the return
    return 1
