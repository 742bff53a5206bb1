import vllm.v1.serial_utils as utils
from vllm.v1.executor.abstract import Executor
from vllm.v1.executor.uniproc_executor import UniProcExecutor
from vllm.v1.outputs import AsyncModelRunnerOutput
from vllm.v1.serial_utils import run_method


class Direct(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        if not non_block:
            return [run_method(self.worker, method, args, kwargs)]  #! AO004
        return self.later(run_method(self.worker, method, args, kwargs))


class Collected(UniProcExecutor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        results = []
        for worker in self.workers:
            results.append(utils.run_method(worker, method, args, kwargs))
        if non_block:
            return results
        return results if len(results) > 1 else results[0]  #! AO004


class Conditional(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        result = run_method(self.worker, method, args, kwargs)
        return self.later(result) if non_block else [result]  #! AO004


class ByName(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        if self.one:
            return [w.execute_method(method, *args) for w in self.workers]  #! AO004
        if self.two:
            return [getattr(self.worker, method)(*args)]  #! AO004
        function = getattr(self.worker, method)
        return [function(*args)]  #! AO004


class Later(Executor):
    async def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        return [run_method(self.worker, method, args, kwargs)]  #! AO004


class Remote(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        return [w.execute_method.remote(method, *args) for w in self.workers]


class Right(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        result = run_method(self.worker, method, args, kwargs)
        if non_block is True:
            return result
        if isinstance(result, AsyncModelRunnerOutput):
            result = result.get_output()
        return [result]


class AllRight(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        results = [run_method(w, method, args, kwargs) for w in self.workers]
        return [
            r.get_output() if isinstance(r, AsyncModelRunnerOutput) else r
            for r in results
        ]


class Delegating(UniProcExecutor):
    def collective_rpc(self, *args, **kwargs):
        return super().collective_rpc(*args, **kwargs)


class NoExecutor:
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        return run_method(self.worker, method, args, kwargs)


class OneTest(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        result = run_method(self.worker, method, args, kwargs)
        if not non_block and isinstance(result, AsyncModelRunnerOutput):
            result = result.get_output()
        return result


class OneNamedTest(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        results = []
        for worker in self.workers:
            result = run_method(worker, method, args, kwargs)
            late = non_block or not isinstance(result, AsyncModelRunnerOutput)
            results.append(result if late else result.get_output())
        return results


class EachWay(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        if non_block:
            result = run_method(self.worker, method, args, kwargs)
        else:
            result = run_method(self.worker, method, args, kwargs)
            result = getattr(result, "get_output", lambda: None)()
        return result


class TheWrongWay(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        result = run_method(self.worker, method, args, kwargs)
        if non_block and isinstance(result, AsyncModelRunnerOutput):
            result = result.get_output()
        return result  #! AO004


class ByIndex(Executor):
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        results = [None] * len(self.workers)
        for number, worker in enumerate(self.workers):
            results[number] = run_method(worker, method, args, kwargs)
        return results  #! AO004
