def f():
    if y: return 3
    return 2
