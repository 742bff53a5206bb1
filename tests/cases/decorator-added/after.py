import x

# the function
@cached
def f(x):
    return x
