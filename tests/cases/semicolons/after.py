def f():
    before()
    a = 2
    b = 3
    after()  # all
