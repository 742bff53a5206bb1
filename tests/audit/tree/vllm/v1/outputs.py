class ModelRunnerOutput:
    req_ids: list


class AsyncModelRunnerOutput:
    def get_output(self) -> ModelRunnerOutput:
        raise NotImplementedError
