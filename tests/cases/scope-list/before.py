class A:
    def new_home(self):
        a = 1
        b = 3
