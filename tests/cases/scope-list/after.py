class A:
    def new_home(self):
        a = 2
        b = 3
