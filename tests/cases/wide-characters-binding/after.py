def f():
    log('日本語', été.value, '😀')
    use(été.value)
