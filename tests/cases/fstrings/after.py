def f(rank):
    log(f"rank {rank!r:>{width}} {{ok}} {d['k']}")
    log(f"again {rank}")
    a = 1
