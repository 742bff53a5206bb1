def f():
    return out if flag else out.get()
