def f():

    a()
    # g is
    @cached
    def g():
        return 1
    b()
