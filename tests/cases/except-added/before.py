def f():
    try:
        a()
    except Exception as e:
        b(e)
