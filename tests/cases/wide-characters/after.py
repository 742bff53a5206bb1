def f():
    s = '日本語😀'
    use(s)
    a = 2
    b = 3
