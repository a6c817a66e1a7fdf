"""A token bucket: requests take tokens, time brings them back."""


class Bucket:
    def __init__(self, capacity, rate):
        self.capacity = capacity
        self.rate = rate
        self.level = capacity
        self.last = 0

    def take(self, now, cost):
        """Whether a request of this cost may pass at this second."""
        self.level = self.level + (now - self.last) * self.rate
        self.last = int(now)
        self.level -= cost
        return self.level >= 0
