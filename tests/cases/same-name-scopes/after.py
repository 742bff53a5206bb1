def f():
    a = 1
    b = 3

class A:
    def f(self):
        a = 1
        b = 3

    class B:
        def f(self):
            a = 2
            b = 3
