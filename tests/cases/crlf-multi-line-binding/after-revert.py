def f():
    use(1, 2)
