def f():
    x: list[int] = []  # all
    x.append(1)
    y: int
    x = 2
