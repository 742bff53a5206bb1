def f(a):
    # type: (int) -> int
    # type: list[int]
    x = []
    b = 3
