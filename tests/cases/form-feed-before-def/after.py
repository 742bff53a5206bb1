x = 0
def f():
    a = 2
    b = 3
