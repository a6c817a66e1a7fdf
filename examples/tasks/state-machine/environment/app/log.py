"""The book of the keepers: python3 log.py DAY."""
import sys

RULES = {3: "a gate opens below 250 mm of difference", 5: "after each movement there is a pause of 60 s for all but alarms",
         8: "on alarm the lock goes to `sealed`, and only a reset leads to `closed` again",
         10: "after the accident: a gate opens below 130 mm of difference"}


def events(day):
    now = 0
    for line in range(100):
        seed = line * 59 + day * 23
        now += [15, 70, 240, 61][seed % 4]
        yield now, ["open_lower", "close", "open_upper", "close", "open_upper", "alarm", "reset"][seed % 7], seed * 7 % 400


if __name__ == "__main__":
    day = int(sys.argv[1])
    for line, (now, event, difference) in enumerate(events(day)):
        print("day %02d %6d s  %-10s difference %3d mm, wind %2d, boats waiting above %d, below %d" % (
            day, now, event, difference, line * 7 % 11, line % 4, line * 3 % 5))
        if line == 63 and day in RULES:
            print("rule of the keepers: " + RULES[day])
