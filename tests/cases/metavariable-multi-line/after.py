def f():
    a = call(
        1,  # one
        2,
    )
    b = (
        p
        .q
    )
    c = call(
        1,  # one
        2,
    )
    d = (p
        .q)
