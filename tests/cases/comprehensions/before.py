def f():
    return {k: [v for v in vs if v] for k, vs in x.items()}
