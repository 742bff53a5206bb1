import os

def f():
    a = 1
    b = 3

def g():
    a = 1
