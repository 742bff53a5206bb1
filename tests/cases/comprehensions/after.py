def f():
    return {k: [v for v in vs] for k, vs in x.items()}
