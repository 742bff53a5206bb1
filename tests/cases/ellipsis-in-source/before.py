def f():
    a = g(...)
    use(g(1))
    a = g(...)
    use(g(...))
