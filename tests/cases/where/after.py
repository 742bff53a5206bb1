def f(self):
    return 1
