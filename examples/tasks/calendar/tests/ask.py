"""Prints what the calendar has, the many days as a hash."""
import hashlib

import cal

RULES = ["every 3 weeks from 2026-01-05", "every 2 weeks from 2025-06-04", "every 5 weeks from 2025-03-07",
         "monthly on 31", "monthly on 30", "monthly on 17", "last friday", "last monday", "yearly on 02-29", "yearly on 06-17"]
for rule in RULES:
    days = [str(day) for year in range(2026, 2045) for day in cal.occurrences(rule, year)]
    print(rule, len(days), hashlib.sha256(" ".join(days).encode()).hexdigest())
print(cal.occurrences("yearly on 02-29", 2027), cal.HOLIDAY_NAME)
