# the first
def f(a: int, b: str = "x") -> None:
    pass
