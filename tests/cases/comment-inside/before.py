def f():
    a = call(
        1,  # one
        # two follows
        2,
    )
    b = 3
