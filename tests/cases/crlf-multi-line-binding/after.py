def f():
    use(2, 1)
    done()
