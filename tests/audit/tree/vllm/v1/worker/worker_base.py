class WorkerBase:
    def execute_model(self, step):
        raise NotImplementedError


class WorkerWrapperBase:
    worker: WorkerBase
