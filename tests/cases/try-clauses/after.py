def f():
    try:
        a()
    except A as e:
        b(e)
    except C:
        pass
    else:
        d()
        e()
    finally:
        before()
        g()
