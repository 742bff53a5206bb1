def f():
    x: list[int] = []  # all
    y: int
    x = 2
