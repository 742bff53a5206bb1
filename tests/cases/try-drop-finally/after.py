def f():
    try:
        a()
    except E:
        b()
    # always
    return 1
