class Executor:
    def collective_rpc(self, method, args=(), kwargs=None, non_block=False):
        raise NotImplementedError

    def execute_model(self, step, non_block=False):
        return self.collective_rpc("execute_model", (step,), non_block=non_block)

    def sample_tokens(self, grammar, non_block=False):
        return self.collective_rpc("sample_tokens", (grammar,), non_block=non_block)
