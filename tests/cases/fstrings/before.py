def f(rank):
    log(f"rank {rank!r:>{width}} {{ok}} {d['k']}")
    a = 1
