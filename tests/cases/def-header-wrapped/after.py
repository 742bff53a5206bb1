# the first
def f(a: int, b: str = "x", c: bool = False) -> None:
    pass
