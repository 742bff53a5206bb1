def f(self):
    if self.flag:
        return 1
