def f():
    log('日本語', été.value, '😀')
