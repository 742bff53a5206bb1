import os
import sys

def f():
    a = 2
    b = 3

def g():
    a = 9
