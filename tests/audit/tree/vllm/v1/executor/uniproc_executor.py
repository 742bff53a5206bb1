from vllm.v1.executor.abstract import Executor
from vllm.v1.serial_utils import run_method


class UniProcExecutor(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        if not non_block:
            return [run_method(self.driver_worker, method, args, kwargs)]
        return self.later(run_method(self.driver_worker, method, args, kwargs))
