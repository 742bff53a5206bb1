# -*- coding: latin-1 -*-
def f():
    name = 'café'
    a = 1
    b = 3
