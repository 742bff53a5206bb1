def f():
    before(); a = 1; b = 3; after()  # all
