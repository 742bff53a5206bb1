def f():
    call(one, two)  # mine
    return 1
