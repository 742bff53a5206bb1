def f():
    x = call(
        1,
        2,
    )
    return x
