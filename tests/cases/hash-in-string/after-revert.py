def f():
    # yes
    a = '# no'
    b = 3
