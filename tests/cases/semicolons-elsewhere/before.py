x = 1; y = 2
def f():
    i = 1; j = 2
    a = 1
    b = 3
