class A:
    # slow
    @cached(size=9)
    @traced(level=1)
    def f(self, x):
        return x
