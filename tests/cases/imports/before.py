from a import (
    x,
    y as z,  # z
)
import b

def f():
    import b
