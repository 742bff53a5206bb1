def f():
    try:
        a = 1
    except E:
        pass
    # about the check
    if (  # really
        a
    ):
        use( a )  # odd spacing
        # the end of it
    return a
