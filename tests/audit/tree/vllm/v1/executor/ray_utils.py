from vllm.v1.outputs import AsyncModelRunnerOutput
from vllm.v1.worker.worker_base import WorkerWrapperBase

try:
    import ray

    class RayWorkerWrapper(WorkerWrapperBase):
        def execute_model_ray(self, request):
            step, grammar = request
            output = self.worker.model_runner.execute_model(step)
            if output is None:
                output = self.worker.model_runner.sample_tokens(grammar)
            if isinstance(output, AsyncModelRunnerOutput):
                output = output.get_output()
            return output

except ImportError:
    ray = None
    RayWorkerWrapper = None
