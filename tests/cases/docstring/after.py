def f():
    """New words."""
    return 1
