import vllm.v1.worker.gpu.model_runner as second
from vllm.v1.worker import gpu_model_runner
from vllm.v1.worker.gpu.model_runner import GPUModelRunner as Runner


class Direct(Runner):
    def step(self):
        if self.use_async_scheduling:  #! AO001
            return getattr(self, "use_async_scheduling", False)  #! AO001
        return self.scheduler_config.async_scheduling


class Indirect(Direct):
    def peek(self):
        later = lambda: self.use_async_scheduling  #! AO001
        return later


class First(gpu_model_runner.GPUModelRunner):
    def step(self):
        return self.use_async_scheduling


class Own(Runner):
    def __init__(self, config):
        self.use_async_scheduling = config.async_scheduling

    def step(self):
        return self.use_async_scheduling


class Mixin:
    def peek(self):
        return self.use_async_scheduling  #! AO001


class Mixed(Mixin, second.GPUModelRunner):
    pass


class GPUModelRunner:
    def step(self):
        return self.use_async_scheduling


class Lookalike(GPUModelRunner):
    def step(self):
        return self.use_async_scheduling


def hold(runner: "second.GPUModelRunner | None", first: First, config, other):
    made = second.GPUModelRunner(config)
    made.use_async_scheduling = True
    worker = other.worker
    return (
        runner.use_async_scheduling,  #! AO001
        made.use_async_scheduling,  #! AO001
        worker.model_runner.use_async_scheduling,  #! AO001
        first.use_async_scheduling,
        config.use_async_scheduling,
    )


class Side:
    def __init__(self, runner: Runner, config):
        self.runner, self.config = runner, config

    def peek(self):
        one, two = self.runner, self.config
        return one.use_async_scheduling or two.use_async_scheduling  #! AO001


class SetsByName(Runner):
    def __init__(self, config):
        super().__init__(config)
        setattr(self, "use_async_scheduling", config.async_scheduling)

    def step(self):
        return self.use_async_scheduling


class OnlyDeclares(Runner):
    use_async_scheduling: bool

    def step(self):
        return self.use_async_scheduling  #! AO001
