from vllm.v1.outputs import AsyncModelRunnerOutput, ModelRunnerOutput
from vllm.v1.worker.gpu.model_runner import GPUModelRunner
from vllm.v1.worker.gpu_model_runner import GPUModelRunner as First


def count(output: ModelRunnerOutput):
    return len(output.req_ids)


def keep(output: ModelRunnerOutput | AsyncModelRunnerOutput):
    return output


class Attribute(GPUModelRunner):
    def sample_tokens(self, grammar):
        output = super().sample_tokens(grammar)  #! AO002
        self.seen += len(output.req_ids)
        return output

    def pool(self):
        return super().pool().pooler_output  #! AO002


class EveryOtherUse(GPUModelRunner):
    def sample_tokens(self, grammar):
        first, _ = super().sample_tokens(grammar)  #! AO002
        for _ in super().sample_tokens(grammar):  #! AO002
            pass
        again = super(EveryOtherUse, self).sample_tokens(grammar)[0]  #! AO002
        by_name = GPUModelRunner.sample_tokens(self, grammar)  #! AO002
        count(by_name)
        self.last = super().sample_tokens(grammar)  #! AO002
        if self.last is not None:
            self.last.req_ids.clear()
        if (output := super().pool()) == again:  #! AO002
            return first
        return self.scheduler.update_from_output(output)


class InOneBranch(GPUModelRunner):
    def sample_tokens(self, grammar):
        output = super().sample_tokens(grammar)  #! AO002
        if isinstance(output, AsyncModelRunnerOutput):
            self.pending.append(output)
        self.log(output.req_ids)
        return output


class Right(GPUModelRunner):
    def sample_tokens(self, grammar):
        output = super().sample_tokens(grammar)
        if output is None:
            return None
        if isinstance(output, AsyncModelRunnerOutput):
            output = output.get_output()
        self.log(output.req_ids)
        return keep(output)

    def pool(self):
        output = super().pool()
        self.outputs.append(output)
        self.by_step[self.step] = keep(output)
        if not output or isinstance(output, ModelRunnerOutput) and output.req_ids:
            return None
        return Wrapper(output)

    def other(self):
        output = super().sample_tokens(None)
        assert isinstance(output, ModelRunnerOutput)
        return output.req_ids

    def early(self):
        output = super().pool()
        if hasattr(output, "get_output"):
            return output.get_output().req_ids
        return output.req_ids


class Wrapper(AsyncModelRunnerOutput):
    def __init__(self, inner):
        self.inner = inner

    def get_output(self):
        output = self.inner.get_output()
        return output.req_ids


class Resolving(GPUModelRunner):
    def sample_tokens(self, grammar):
        return super().sample_tokens(grammar).get_output()


class OnResolving(Resolving):
    def sample_tokens(self, grammar):
        return super().sample_tokens(grammar).req_ids


class Passing(GPUModelRunner):
    def sample_tokens(self, grammar):
        return super().sample_tokens(grammar)


class OnPassing(Passing):
    def sample_tokens(self, grammar):
        return super().sample_tokens(grammar).req_ids  #! AO002


class OfTheFirst(First):
    def sample_tokens(self, grammar):
        return super().sample_tokens(grammar).req_ids
