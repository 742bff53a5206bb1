try:
    import fast
except ImportError:
    match slow:
        case 1:
            def f():
                a = 2
                b = 3
