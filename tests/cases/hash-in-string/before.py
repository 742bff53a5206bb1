def f():
    a = '# no'  # yes
    b = 3
