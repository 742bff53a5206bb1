class A:
    x: int = 1
    if DEBUG:
        y = 2

    def f(self):
        y = 2
