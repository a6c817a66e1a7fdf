"""The limiter at work: python3 simulate.py TENANT."""
import json
import sys
from limiter import Bucket

tenant = sys.argv[1]
capacity, rate = json.load(open("LIMITS.json"))[tenant]
bucket = Bucket(capacity, rate)
now = 0
for step in range(112):
    seed = step * 29 + int(tenant[1:])
    now += [0.25, 0.5, 0, 3, 0.125][seed % 5] if step != 60 else 90
    cost = seed % 7 + 1
    passed = bucket.take(now, cost)
    print("%s at %8.3f s: request of cost %d %s, level %8.3f of %d" % (
        tenant, now, cost, "passes    " if passed else "is refused", bucket.level, capacity))
