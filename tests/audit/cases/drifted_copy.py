from vllm.v1.executor.multiproc_executor import WorkerProc
from vllm.v1.executor.ray_utils import RayWorkerWrapper
from vllm.v1.outputs import AsyncModelRunnerOutput


class Identical(WorkerProc):
    def worker_busy_loop(self) -> None:  #! AO006
        """Another docstring, other quotes and layout."""
        while True:
            method, args = self.requests.dequeue(
            )
            try:
                output = getattr(self.worker, method)(*args)
            except Exception as error:
                self.handle_output(error)
                continue
            self.handle_output(output)

    def enqueue_output(self, output):
        if isinstance(output, AsyncModelRunnerOutput):
            output = output.get_output()
        self.queue.enqueue(output)


class Drifted(WorkerProc):
    def enqueue_output(self, output):  #! AO006
        self.queue.enqueue((output, self.rank))

    def handle_output(self, output):
        self.count += 1
        super().handle_output(output)

    async def async_output_busy_loop(self):  #! AO006
        while self.alive:
            self.enqueue_output(self.waiting.get())


class HalfCopied(RayWorkerWrapper):
    def execute_model_ray(self, request):  #! AO006
        if not self.asynchronous:
            return super().execute_model_ray(request)
        step, grammar = request
        output = self.worker.model_runner.execute_model(step)
        if output is None:
            output = self.worker.model_runner.sample_tokens(grammar)
        return self.keep(output)


class Copied:
    def worker_busy_loop(self):  #! AO006
        while self.alive:
            method, args = self.requests.dequeue()
            try:
                output = getattr(self.worker, method)(*args)
            except Exception as error:
                self.handle_output(error)
                continue
            self.handle_output(output)


class Lookalike:
    def worker_busy_loop(self):
        while self.alive:
            self.answer(self.requests.get())
