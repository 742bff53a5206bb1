import sys

import vllm.v1.executor.multiproc_executor
from vllm.v1 import executor
from vllm.v1.executor import multiproc_executor as mp
from vllm.v1.executor.abstract import Executor
from vllm.v1.worker.gpu import model_runner
from vllm.v1.worker.gpu_model_runner import GPUModelRunner as First


class Mine(mp.MultiprocExecutor):
    pass


def loop(self):
    pass


vllm.v1.executor.multiproc_executor.MultiprocExecutor = Mine  #! AO007
mp.WorkerProc.worker_busy_loop = loop  #! AO007
mp.WorkerProc.shutdown, mp.WorkerProc.handle_output = loop, loop  #! AO007
setattr(model_runner.GPUModelRunner, "sample_tokens", loop)  #! AO007
Mine.collective_rpc = loop  #! AO007
executor.UniProcExecutor = Mine  #! AO007

sys.modules["vllm.v1.executor.multiproc_executor"].WorkerProc = Mine  #! AO007

mp.other = Mine
mp.WorkerProc.worker_main = loop
First.sample_tokens = loop
setattr(First, "sample_tokens", loop)
mp.WorkerProc.worker_busy_loop = mp.WorkerProc.worker_busy_loop


def on_an_instance(runner: model_runner.GPUModelRunner, one: Executor, other):
    runner.pool = loop  #! AO007
    one.pool = other.pool = loop
    assert mp.MultiprocExecutor == Mine
    with other.patch.object(model_runner.GPUModelRunner, "pool"):
        pass
