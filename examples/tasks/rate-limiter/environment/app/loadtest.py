"""The load test of a tenant: python3 loadtest.py TENANT."""
import sys

AGREED = {"t03": (73, 4), "t07": (19, 6), "t11": (112, 4)}
tenant = sys.argv[1]
number = int(tenant[1:])
for second in range(104):
    seed = second * 61 + number * 17
    sent = seed % 47 + 3
    refused = max(0, sent - 31 - seed % 5)
    print("%s second %03d: %3d requests sent, %3d answered, %3d refused, p50 %3d ms, p99 %4d ms" % (
        tenant, second, sent, sent - refused, refused, 11 + seed % 9, 80 + seed * 13 % 460))
    if second == 23 + number * 5:
        print("%s agreed: capacity %d, rate %d" % ((tenant,) + AGREED.get(tenant, (40, 4))))
