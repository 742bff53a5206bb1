class ARunner:
    def load(self):
        step(1)

class BRunner:
    class Inner:
        def load(self):
            step(1)

class Other:
    def load(self):
        step(1)
