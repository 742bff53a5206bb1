# z
from a import x
from c import y as z
import b

def f():
    import b
