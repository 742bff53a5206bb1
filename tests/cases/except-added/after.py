def f():
    try:
        a()
    except KeyError:
        pass
    except Exception as e:
        b(e)
