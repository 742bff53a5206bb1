def f():
    x = call(
        1,
        3,
    )
    return x
