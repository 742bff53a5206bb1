def f():
	if x:
		a = 1
		for i in a:
			use(
			    i
			)
	return a
