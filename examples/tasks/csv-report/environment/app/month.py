"""A month of sales as CSV: python3 month.py MM. Lines with # are notes of the shops."""
import sys

FIELDS = "id date region shop article units price discount state".split()
REGIONS = ["north", "fenside", "coast", "hills", "North ", "COAST"]
NOTES = {2: "the tills of S04 were replaced", 3: "for the whole year, one crown is 0.0831 of ours",
         8: "region fenside is called marsh from this month on", 10: "S09 was closed for a week"}
ARTICLES = ["lantern, small", "lantern, large", "rope (metre)", "oilcloth", "kettle", "tent peg, box of 20"]


def rows(number):
    for line in range(80):
        seed = line * 53 + number * 19
        shop = [4, 9, 12, 17, 21, 30][seed % 6]
        region = REGIONS[seed * 5 % 6]
        if region == "fenside" and number >= 8:
            region = "marsh"
        units = seed % 23 + 1 if seed % 17 else -(seed % 5 + 1)
        price = (seed * 7 % 400 + 120) / 10 * (12 if shop == 17 else 1)
        yield dict(zip(FIELDS, [
            "%02d-%04d" % (number, line - (line % 26 == 25)), "%02d-%02d" % (number, line % 28 + 1), region,
            "S%02d" % shop, ARTICLES[seed % 6].replace(",", ";"), str(units), "%.2f" % price,
            ["", "5", "", "10"][seed % 4], "void" if seed % 13 == 0 else "paid"]))


if __name__ == "__main__":
    number = int(sys.argv[1])
    print(",".join(FIELDS) + ",till,clerk,receipt,remarks")
    for line, row in enumerate(rows(number)):
        seed = line * 53 + number * 19
        print(",".join(row.values()) + ",till %d,clerk %02d,R%07d,%s" % (
            seed % 4 + 1, seed % 19, seed * 8191 % 9999991, ["", "gift wrapped", "paid in two parts", "regular"][seed % 4]))
        if line == 44 and number in NOTES:
            print("# note: " + NOTES[number])
