class A:
    # slow
    @cached
    @traced(level=1)
    def f(self, x):
        return x
