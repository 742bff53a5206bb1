class A(Base):
    x = 1

    def f(self): ...
