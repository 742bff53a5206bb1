def f():
    say('it' "'s", r"\d", u'x')
    a = 1
