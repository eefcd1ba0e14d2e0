#!/usr/bin/env python3
"""options.py: what a row of a table of options says of other options has an effect: each word of .not_with, .needs,
.set_with and .set_without is the name of an option, and .because stands beside .not_with.

Exit status 1: a word is no option of any table, or a reason belongs to nothing.
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FIELD = r"\.(not_with|needs|set_with|set_without)\s*=\s*((?:\"[^\"]*\"\s*)+)"
FEWEST = {"not_with": 12, "needs": 8, "set_with": 2, "set_without": 8}  # fewer: the tables are not read right

text = {f: f.read_text() for room in ("libref", "capture", "compare") for f in (SOURCE / room).rglob("*.[ch]")}
names = {name for t in text.values() for name in re.findall(r'\{ *(?:\\\n\s*)?"([a-z][a-z0-9-]+)",', t)}
seen = dict.fromkeys(FEWEST, 0)
bad = 0
for file, t in text.items():
    for field, strings in re.findall(FIELD, t):
        seen[field] += 1
        for word in "".join(re.findall(r'"([^"]*)"', strings)).split("|"):
            if word and word not in names:
                print(f"{file.relative_to(SOURCE)}: .{field}: no table has an option '{word}'")
                bad = 1
    for at in [m.start() for m in re.finditer(r"\.because\b", t)] if file.name != "options.h" else []:
        row = t[t.rindex('{ "', 0, at):t.index(".help", at)]
        if ".not_with" not in row:
            print(f"{file.relative_to(SOURCE)}: .because without .not_with: {row[:40]}")
            bad = 1
for field, n in seen.items():
    if n < FEWEST[field]:
        print(f".{field}: {n} rows found, at least {FEWEST[field]} expected")
        bad = 1
sys.exit(bad)
