def f(a):
    # type: (int) -> int
    # type: list[int]
    x = list()
    b = 3
