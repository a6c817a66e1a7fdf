"""Hands over the shift."""
import os

try:
    word, number = open("shift.open").read().split()
except OSError:
    raise SystemExit("the shift was handed over already")
os.remove("shift.open")
print("the key word of this shift is %s\nyou are keeper %s" % (word, number))
