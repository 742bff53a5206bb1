class A:
    x: int = 1
    if DEBUG:
        y = 3

    def f(self):
        y = 2
