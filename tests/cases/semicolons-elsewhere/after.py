x = 1; y = 2
def f():
    i = 1; j = 2
    a = 2
    b = 3
