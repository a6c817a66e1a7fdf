"""Prints who holds the lock, and what it does."""
import machine

print(machine.KEYWORD, repr(machine.KEEPER))
lock = machine.Lock()
EVENTS = [(0, "open_lower", 129), (10, "close", 0), (45, "open_upper", 0), (60, "close", 0), (120, "open_upper", 130),
          (121, "open_upper", 10), (122, "alarm", 0), (300, "close", 0), (301, "reset", 0)]
for now, event, difference in EVENTS:
    print(now, event, difference, lock.handle(now, event, difference), lock.state)
