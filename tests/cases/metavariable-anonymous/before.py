def f():
    call(1, 2)
    a = 1
