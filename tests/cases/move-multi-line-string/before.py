def f():
    if x:
        a()
    text = """
    one
  two
"""
    return text
