class A:
    @cached  # slow
    @traced(level=1)
    def f(self, x):
        return x
