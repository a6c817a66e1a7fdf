"""The lock: two gates, one of which may be open."""

KEYWORD = None
KEEPER = None
DIFFERENCE = 500
PAUSE = 0
AFTER = {"open_lower": "lower_open", "open_upper": "upper_open", "close": "closed", "reset": "closed"}


class Lock:
    def __init__(self):
        self.state = "closed"
        self.last = -1000

    def handle(self, now, event, difference):
        """Whether an event is carried out; `difference` is that of the levels in mm."""
        if now - self.last < PAUSE:
            return False
        if event == "open_lower" and not difference <= DIFFERENCE:
            return False
        if event == "open_upper" and not difference <= DIFFERENCE:
            return False
        if event not in AFTER:
            return False
        self.state = AFTER[event]
        self.last = now
        return True
