def f():
    # yes
    a = '# neither'
    b = 3
