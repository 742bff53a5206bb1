try:
    import fast
except ImportError:
    match slow:
        case 1:
            def f():
                a = 1
                b = 3
