def f():
    x = call(
        1,
        2,
        3,
    )
    return x
