def f():
    a = x.y
    use(x.z)
    a = x.y
    use(x.y, 1)
