import a
import b
import c


# the answer
X = 42
