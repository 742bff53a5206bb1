def f():
    try:
        a()
    except E:
        b()
    finally:
        c()
    # always
    return 1
