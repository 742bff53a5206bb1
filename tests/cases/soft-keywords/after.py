def f(match, case, type):
    match[case] = type
    case(match, _)
    _ = 1
