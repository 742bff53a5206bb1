def f():
    s = '日本語😀'
    use(s)
    a = 1
    b = 3
