"""Ways to tell what a result is, before it is used."""

from dataclasses import replace

from vllm.v1.outputs import AsyncModelRunnerOutput, ModelRunnerOutput
from vllm.v1.worker.gpu.model_runner import GPUModelRunner


class Matching(GPUModelRunner):
    def sample_tokens(self, grammar):
        output = super().sample_tokens(grammar)
        match output:
            case AsyncModelRunnerOutput():
                output = output.get_output()
            case None:
                return None
        return output.req_ids

    def pool(self):
        match super().pool():
            case None | AsyncModelRunnerOutput() as output:
                return output
            case ModelRunnerOutput(req_ids=ids) as output:
                return output.pooler_output, ids
        return None


class MatchingTooLittle(GPUModelRunner):
    def sample_tokens(self, grammar):
        output = super().sample_tokens(grammar)  #! AO002
        match output:
            case None:
                return None
            case _:
                return output.req_ids

    def pool(self):
        match super().pool():  #! AO002
            case None:
                return None
            case output if output.req_ids:
                return output


class Asking(GPUModelRunner):
    def sample_tokens(self, grammar):
        output = super().sample_tokens(grammar)
        resolve = getattr(output, "get_output", None)
        if resolve is not None:
            output = resolve()
        return output.req_ids

    def pool(self):
        output = super().pool()
        if callable(getattr(output, "get_output", None)):
            output = output.get_output()
        return output.pooler_output

    def named(self, grammar):
        output = super().sample_tokens(grammar)
        pending = isinstance(output, AsyncModelRunnerOutput)
        if pending:
            self.pending.append(output)
        if not pending:
            self.log(output.req_ids)
        return output

    def for_what_it_wants(self, grammar):
        output = super().sample_tokens(grammar)
        if hasattr(output, "req_ids"):
            return output.req_ids
        return output


class AskingTooEarly(GPUModelRunner):
    def sample_tokens(self, grammar):
        output = None
        pending = isinstance(output, AsyncModelRunnerOutput)
        output = super().sample_tokens(grammar)  #! AO002
        return output if pending else output.req_ids


class Trying(GPUModelRunner):
    def sample_tokens(self, grammar):
        output = super().sample_tokens(grammar)
        try:
            output = output.get_output()
        except AttributeError:
            pass
        return output.req_ids

    def pool(self):
        output = super().pool()  #! AO002
        try:
            self.check()
        except AttributeError:
            pass
        return output.pooler_output


class Knowing(GPUModelRunner):
    def sample_tokens(self, grammar):
        output = super().sample_tokens(grammar)
        if isinstance(output, AsyncModelRunnerOutput):
            output.copy_event.synchronize()
        return output


class Setting(GPUModelRunner):
    def sample_tokens(self, grammar):
        output = super().sample_tokens(grammar)  #! AO002
        assert output is not None
        output.extra = self.extra
        return output

    def pool(self):
        output = super().pool()  #! AO002
        output[0] = None
        return replace(super().pool(), extra=1)  #! AO002


class Mixin:
    def sample_tokens(self, grammar):
        output = super().sample_tokens(grammar)  #! AO002
        self.seen += len(output.req_ids)
        return output


class Mixed(Mixin, GPUModelRunner):
    def sample_tokens(self, grammar):
        return super().sample_tokens(grammar).req_ids  #! AO002
