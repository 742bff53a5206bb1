class A:
    x = 1
    y = 2
class B: y = 2
