def f(a):
    # type: (int) -> int
    x = []  # type: list[int]
    b = 3
