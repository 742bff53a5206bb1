def f():
    if x: a()
    else: b()
    return 2
