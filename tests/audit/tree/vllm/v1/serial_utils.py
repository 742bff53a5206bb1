def run_method(worker, method, args, kwargs):
    return getattr(worker, method)(*args, **kwargs)
