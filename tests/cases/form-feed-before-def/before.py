x = 0
def f():
    a = 1
    b = 3
