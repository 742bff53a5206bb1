def f(
    a: int,  # the first
    b: str = 'x',
) -> None:
    pass
