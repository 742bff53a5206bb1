def f():
    try:
        a()
    except E:
        b()
    finally:  # always
        c()
    return 1
