import torch  # all that it has to do with it


class Mean:
    def __init__(self):
        self.sum, self.n = 0.0, 0

    def add(self, value):
        self.sum += value  # want: R06
        self.n += 1
