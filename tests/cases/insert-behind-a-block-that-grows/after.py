class Worker:
    def run(self, job):
        output = job()
        log(output)
        return self.checked(output)

    def checked(self, output):
        return output

    def stop(self):
        self.running = False
