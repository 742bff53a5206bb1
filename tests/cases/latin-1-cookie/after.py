# -*- coding: latin-1 -*-
def f():
    name = 'café'
    a = "é"
    b = 3
