def f():
    try:
        a()
    except A:
        x()
    except B:
        y()
    except Exception as e:
        log(e)
        b(e)
