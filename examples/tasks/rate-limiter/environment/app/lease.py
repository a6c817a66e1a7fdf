"""Gives the lease to whoever asks first."""
import os

try:
    ticket = open(".lease").read()
except OSError:
    raise SystemExit("the lease was given out already")
os.remove(".lease")
print("lease granted: %d" % (int(ticket) ^ 1234))
