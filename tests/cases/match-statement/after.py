def f(cmd):
    match cmd:
        case ["go", x] if x > 0:
            go(x + 1)
        case {"stop": True, **rest}:
            stop()
        case Point(x=0) | None:
            pass
        # anything
        case other:
            fail()
