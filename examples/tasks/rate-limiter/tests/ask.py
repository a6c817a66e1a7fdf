"""Prints the limits, and what a bucket lets through."""
import json

from limiter import Bucket

with open("LIMITS.json", encoding="utf-8") as file:
    print(json.dumps(json.load(file), sort_keys=True))
bucket = Bucket(10, 2)
for now, cost in [(0, 4), (0, 4), (0, 4), (0, 2), (0.25, 1), (0.5, 1), (1000, 11), (1000, 10)]:
    print("at %s s, of cost %d: %s" % (now, cost, bucket.take(now, cost)))
