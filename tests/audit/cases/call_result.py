from types import NoneType
from typing import Optional

from vllm.v1.executor import Executor
from vllm.v1.outputs import AsyncModelRunnerOutput, ModelRunnerOutput
from vllm.v1.worker.gpu.model_runner import GPUModelRunner
from vllm.v1.worker.gpu_model_runner import GPUModelRunner as First
from vllm.v1.worker.gpu_worker import Worker


class MyWorker(Worker):
    def warm_up(self):
        output = self.model_runner.sample_tokens(None)  #! AO003
        return output.req_ids

    def execute_model(self, step):
        output = self.model_runner.execute_model(step)
        if isinstance(output, (ModelRunnerOutput, AsyncModelRunnerOutput, NoneType)):
            return output
        return output.residual


class FirstWorker(Worker):
    def init_device(self):
        self.model_runner = First(self.config)

    def warm_up(self):
        return self.model_runner.sample_tokens(None).req_ids


class Holder:
    runner: Optional[GPUModelRunner]

    def __init__(self, worker: Worker, first: First):
        self.worker = worker
        self.first = first

    def step(self, step):
        if step:
            return self.worker.execute_model(step).req_ids  #! AO003
        outputs = [self.runner.pool()]
        self.runner.sample_tokens(None)
        self.first.sample_tokens(None).req_ids
        return outputs


class MyExecutor(Executor):
    def peek(self, worker: Worker):
        return worker.sample_tokens(None).req_ids


def loop(runner: GPUModelRunner, first: FirstWorker, mine: MyWorker, thread_pool):
    while True:
        output = runner.sample_tokens(None)  #! AO003
        if runner.done:
            break
        first.execute_model(None).req_ids
        thread_pool.pool().req_ids
    state = runner.execute_model(None)
    sent = state.tensors + state.anything
    try:
        more = mine.sample_tokens(None)  #! AO003
    except ValueError:
        more = None
    finally:
        runner.close()
    return output.req_ids, sent, sum(more)


def guarded(runner: GPUModelRunner):
    out = runner.pool()
    ids = out.get_output().req_ids if isinstance(out, AsyncModelRunnerOutput) else out.req_ids
    match runner.sample_tokens(None):
        case AsyncModelRunnerOutput() as later:
            return later.get_output()
    assert runner.pool() in (ids, None)
    return runner.pool() is None


def by_class(runner):
    assert GPUModelRunner.sample_tokens(runner, None).req_ids  #! AO003
    assert First.sample_tokens(runner, None).req_ids


script = GPUModelRunner(None)
made = script.sample_tokens(None)
if isinstance(made, AsyncModelRunnerOutput):
    made = made.get_output()
else:
    print(made.req_ids)
print(made.req_ids)
print(script.pool().req_ids)  #! AO003


class OverWorker(Worker):
    def sample_tokens(self, grammar):
        output = super().sample_tokens(grammar)  #! AO003
        self.seen += len(output.req_ids)
        return output

    def execute_model(self, step):
        output = super().execute_model(step)
        if isinstance(output, ModelRunnerOutput):
            self.seen += len(output.req_ids)
        return output


class OverWorkerOfTheFirst(Worker):
    def init_device(self):
        self.model_runner = First(self.config)

    def sample_tokens(self, grammar):
        return super().sample_tokens(grammar).req_ids
