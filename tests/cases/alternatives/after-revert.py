def f():
    if flag:
        return out
    return out.get()
