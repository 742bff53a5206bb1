def f():
    y = x[1:n:2, ::-1]
    ok = 0 <= y < n != 3
