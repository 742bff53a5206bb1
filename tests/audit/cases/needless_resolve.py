from vllm.v1.executor import Executor
from vllm.v1.outputs import AsyncModelRunnerOutput


class Core:
    executor: Executor

    def step(self, step):
        future = self.executor.execute_model(step, non_block=True)
        output = future.result()
        if output is None:
            output = self.executor.sample_tokens(None)
        return output.get_output()  #! AO005

    def guarded(self, step):
        output = self.executor.execute_model(step)
        if isinstance(output, AsyncModelRunnerOutput):
            output = output.get_output()
        return output

    def asked(self, step):
        output = self.executor.execute_model(step)
        return output.get_output() if hasattr(output, "get_output") else output

    def wrongly_guarded(self, step):
        output = self.executor.execute_model(step)
        if not isinstance(output, AsyncModelRunnerOutput):
            output = output.get_output()  #! AO005
        return output


def items(executor: Executor):
    first = executor.collective_rpc("sample_tokens")[0].get_output()  #! AO005
    for output in executor.collective_rpc("sample_tokens"):
        output.get_output()  #! AO005
    return [
        o.get_output() if isinstance(o, AsyncModelRunnerOutput) else o
        for o in executor.collective_rpc("sample_tokens")
    ]


def by_name(engine, step):
    return engine.model_executor.sample_tokens(step).get_output()  #! AO005


def another(client, step):
    return client.sample_tokens(step).get_output()


def patient(executor: Executor, step):
    output = executor.execute_model(step)
    try:
        return output.get_output()
    except AttributeError:
        return output


def asking(executor: Executor, step):
    output = executor.execute_model(step)
    resolve = getattr(output, "get_output", None)
    return output if resolve is None else resolve()


def impatient(executor: Executor, step):
    output = executor.execute_model(step)
    try:
        return output.get_output()  #! AO005
    except ValueError:
        return output
