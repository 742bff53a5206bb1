def f():
    try:
        a()
    except E:
        b()
        # done
    else:
        c()
    finally:
        d()
    return 1
