def f():
    a = x or y
    b = p, q
    c = lambda: 0
    d = 1
    use((x or y).real, not (x or y), (p, q), [lambda: 0], k=x or y)
    z = (1).real == (x or y)
