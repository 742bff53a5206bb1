def f(self):
    if self.config.flag:
        return 1
