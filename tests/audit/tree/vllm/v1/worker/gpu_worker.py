from vllm.v1.outputs import AsyncModelRunnerOutput, ModelRunnerOutput
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
from vllm.v1.worker.worker_base import WorkerBase


class Worker(WorkerBase):
    def init_device(self):
        if self.second:
            from vllm.v1.worker.gpu.model_runner import GPUModelRunner as Second

            self.model_runner: GPUModelRunner = Second(self.config)
        else:
            self.model_runner = GPUModelRunner(self.config)

    def sample_tokens(self, grammar):
        return self.model_runner.sample_tokens(grammar)

    def execute_model(self, step):
        output = self.model_runner.execute_model(step)
        if output is None and self.second:
            output = self.model_runner.pool()
        if isinstance(output, ModelRunnerOutput | AsyncModelRunnerOutput):
            return output
        self.send(output.tensors)
        return None
