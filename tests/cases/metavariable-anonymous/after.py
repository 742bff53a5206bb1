def f():
    call(1, 2)
    b = 1
