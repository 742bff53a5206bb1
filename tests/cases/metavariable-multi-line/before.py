def f():
    a = call(
        1,  # one
        2,
    )
    b = (
        p
        .q
    )
