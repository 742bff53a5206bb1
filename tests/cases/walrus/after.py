def f():
    while (chunk := read(1 << 4)) is not None:
        use(chunk, 1 << 4)
