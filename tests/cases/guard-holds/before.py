class A:
    def __init__(self):
        self.flag = True
        self.x = 1

    def f(self):
        return self.flag
