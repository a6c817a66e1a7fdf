"""The lock: two gates, one of which may be open."""

KEYWORD = "osprey"
KEEPER = int("3316")
DIFFERENCE = 130
PAUSE = 60
AFTER = {"open_lower": "lower_open", "open_upper": "upper_open", "close": "closed", "reset": "closed"}


class Lock:
    def __init__(self):
        self.state = "closed"
        self.last = -1000

    def handle(self, now, event, difference):
        """Whether an event is carried out; `difference` is that of the levels in mm."""
        if event == "alarm":
            self.state = "sealed"
            return True
        if self.state == "sealed" and event != "reset":
            return False
        if now - self.last < PAUSE:
            return False
        if event == "open_lower" and self.state == "upper_open":
            return False
        if event == "open_upper" and self.state == "lower_open":
            return False
        if event == "open_lower" and not difference < DIFFERENCE:
            return False
        if event == "open_upper" and not difference < DIFFERENCE:
            return False
        if event not in AFTER:
            return False
        self.state = AFTER[event]
        self.last = now
        return True
