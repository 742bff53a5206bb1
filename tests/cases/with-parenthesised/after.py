def f():
    with (
        open(a) as x,  # in
        open(b) as y,  # out
    ):
        copy(x, y, fast=True)
