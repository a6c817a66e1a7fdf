"""Units and revenue by region."""
import sys
import month


def rows():
    for number in range(1, 13):
        seen = set()
        for row in month.rows(number):
            if row["state"] != "void" and row["id"] not in seen:
                seen.add(row["id"])
                yield row


def region(row):
    name = row["region"].strip().lower()
    return "marsh" if name == "fenside" else name


def report():
    totals = {}
    for row in rows():
        total = totals.setdefault(region(row), [0, 0.0])
        units = int(row["units"])
        amount = units * float(row["price"]) * (1 - float(row["discount"] or 0) / 100)
        if row["shop"] == "S17":
            amount *= 0.0831
        if "-v" in sys.argv:
            print("%(id)s %(region)-6s %(shop)s %(state)-4s units %(units)4s price %(price)8s" % row, "-> %10.2f" % amount)
        total[0] += units
        total[1] += amount
    return totals


if __name__ == "__main__":
    for region, (units, revenue) in sorted(report().items()):
        print("%s units=%d revenue=%.2f" % (region, units, revenue))
