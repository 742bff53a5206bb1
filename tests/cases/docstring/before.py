def f():
    """Old words.

    More of them.
    """
    return 1
