from vllm.v1.executor.abstract import Executor
from vllm.v1.outputs import AsyncModelRunnerOutput


class MultiprocExecutor(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        answer = self.ask(method, args, kwargs)
        return answer if non_block else answer.result()


class WorkerProc:
    def enqueue_output(self, output):
        """Sends an answer."""
        if isinstance(output, AsyncModelRunnerOutput):
            output = output.get_output()
        self.queue.enqueue(output)

    def handle_output(self, output):
        if self.asynchronous:
            self.waiting.put(output)
        else:
            self.enqueue_output(output)

    def async_output_busy_loop(self):
        while True:
            self.enqueue_output(self.waiting.get())

    def worker_busy_loop(self):
        while True:
            method, args = self.requests.dequeue()
            try:
                output = getattr(self.worker, method)(*args)
            except Exception as error:
                self.handle_output(error)
                continue
            self.handle_output(output)
