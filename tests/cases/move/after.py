def f():
    try:
        a = 1
        # about the check
        if (  # really
            a
        ):
            use( a )  # odd spacing
            # the end of it
    except E:
        pass
    return a
