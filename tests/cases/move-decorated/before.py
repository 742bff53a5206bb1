def f():
    # g is
    @cached
    def g():
        return 1

    a()
    b()
