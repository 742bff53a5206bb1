class A:
    @cached
    @traced(level=1)
    def f(self):
        a = 2
        b = 3
