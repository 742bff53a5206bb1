def f(match, case, type):
    match[case] = type; case(match)
    _ = 1
