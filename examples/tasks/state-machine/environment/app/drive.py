"""Drives machine.py through a day: python3 drive.py DAY."""
import sys
import log
from machine import Lock

lock, done, before = Lock(), 0, 0
for now, event, difference in log.events(int(sys.argv[1])):
    state = lock.state
    carried_out = lock.handle(now, event, difference)
    done += carried_out
    print("%6d s (+%3d) in %-10s %-10s at %3d mm: %-11s then %s" % (
        now, now - before, state, event, difference, "carried out" if carried_out else "refused", lock.state))
    before = now
print("%d events carried out" % done)
