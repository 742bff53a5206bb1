from vllm.v1.outputs import AsyncModelRunnerOutput


class GPUModelRunner:
    """The second runner, before the refactor."""

    def __init__(self, config):
        self.use_async_scheduling = config.async_scheduling

    def execute_model(self, step):
        return None

    def sample_tokens(self, grammar):
        output = AsyncModelRunnerOutput()
        if self.use_async_scheduling:
            return output
        return output.get_output()

    def pool(self):
        return AsyncModelRunnerOutput()
