def f():
    key = lambda x, *a, k=2: x * k
    b = 3
