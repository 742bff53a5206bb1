def f():
    try:
        a()
    except E:
        b()
        # done
    return 1
