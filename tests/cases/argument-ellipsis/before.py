def f():
    out = Output(x, y, stream=s, *more, done=True)
    return out
