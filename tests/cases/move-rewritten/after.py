def f():
    # mine
    with lock:
        call(
            one,
            two,
        )
    return 1
