class Worker:
    def run(self, job):
        output = job()
        return output

    def stop(self):
        self.running = False
