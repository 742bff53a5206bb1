class A:
    def f(self, a, *args, key=None, **rest):
        # body
        return a, key
