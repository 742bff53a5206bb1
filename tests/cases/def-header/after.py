class A:
    def f(self, a, b=0, *args, key=None, **rest) -> tuple:
        # body
        return a, key
