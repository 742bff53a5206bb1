def f(x: tuple[int, ...] = (...,)):
    x[...] = y[..., 0]
    a = 2
