class A(Base, Mixin, metaclass=Meta):
    x = 1
