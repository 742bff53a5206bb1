import a
import b


# the answer
X = 42
