class A:
    def f(self, x, y=1, *, z: int = 2):
        check(z)
        return z
