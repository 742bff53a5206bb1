def f():
    key = lambda x, *a, k=1: x + k
    b = 3
