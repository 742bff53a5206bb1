def f():
    if x:
        a = 1
        sql = """
select
  *
    """
