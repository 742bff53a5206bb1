def f():
    try:
        a()
    except (A, B) as e:
        b(e)
    except C:
        c()
    else:
        d()
    finally:
        g()
