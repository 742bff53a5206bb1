def f():
	if x:
		a = 1
	return a
