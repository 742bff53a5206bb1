# z
from a import x, y as z
import b

def f():
    import b
