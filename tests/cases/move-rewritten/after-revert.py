def f():
    # mine
    call(one, two)
    return 1
