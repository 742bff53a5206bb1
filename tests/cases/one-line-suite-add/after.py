class A:
    def f(self):
        self.a()
        self.b()
        self.c()
