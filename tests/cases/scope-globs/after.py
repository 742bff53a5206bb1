class ARunner:
    def load(self):
        step(2)

class BRunner:
    class Inner:
        def load(self):
            step(2)

class Other:
    def load(self):
        step(1)
