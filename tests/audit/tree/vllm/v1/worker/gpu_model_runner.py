class GPUModelRunner:
    """The first runner, a look-alike."""

    def __init__(self, config):
        self.use_async_scheduling = config.async_scheduling

    def sample_tokens(self, grammar):
        return self.take(grammar)
