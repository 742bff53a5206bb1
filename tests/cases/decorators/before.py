class A:
    @cached
    @traced(level=1)
    def f(self):
        a = 1
        b = 3
