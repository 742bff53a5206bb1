class A(Base, Mixin):
    x = 1

    def f(self): ...
