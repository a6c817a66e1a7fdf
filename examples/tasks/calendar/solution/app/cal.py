"""The days of recurring appointments: python3 cal.py YEAR prints those of our rules."""
import sys
from calendar import isleap, monthrange
from datetime import date, timedelta

HOLIDAY = "06-17"
HOLIDAY_NAME = "Rushlight"
RULES = ["every 3 weeks from 2026-01-05", "every 2 weeks from 2025-06-04", "every 5 weeks from 2025-03-07",
         "monthly on 31", "monthly on 30", "monthly on 17", "last friday", "last monday", "yearly on 02-29", "yearly on 06-17"]
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()


def days(rule, year):
    words = rule.split()
    if words[0] == "every":
        start = date.fromisoformat(words[4])
        step = timedelta(weeks=int(words[1]))
        day = start
        while day.year < year:
            day += step
        while day.year == year:
            yield day
            day += step
    elif words[0] == "monthly":
        wanted = int(words[2])
        for month in range(1, 13):
            length = monthrange(year, month)[1]
            where = {"last": length, "first": 1}["last"]
            yield date(year, month, wanted if wanted <= length else where)
    elif words[0] == "last":
        months = [[date(year, month, day) for day in range(1, monthrange(year, month)[1] + 1)] for month in range(1, 13)]
        for found in [[day for day in month if day.weekday() == WEEKDAYS.index(words[1])] for month in months]:
            yield found[-1]
    elif words[0] == "yearly":
        if words[2] == "02-29" and not isleap(year):
            words[2] = "03-01"
        yield date(year, *map(int, words[2].split("-")))


def occurrences(rule, year):
    return [day for day in days(rule, year) if day.strftime("%m-%d") != HOLIDAY]


def show(year, heading, occurrences):
    print(heading)
    for rule in RULES:
        for day in occurrences(rule, year):
            print("%s  week %s, a %-9s  by the rule `%s`" % (day, day.strftime("%V"), WEEKDAYS[day.weekday()], rule))


if __name__ == "__main__":
    show(int(sys.argv[1]), "our calendar for " + sys.argv[1], occurrences)
