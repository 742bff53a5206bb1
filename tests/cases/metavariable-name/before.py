class A:
    def do_it(self, item):
        try:
            go(item)
        except E as err:
            print(err)
