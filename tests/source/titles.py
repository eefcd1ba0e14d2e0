#!/usr/bin/env python3
"""titles.py: the words of libref/plan/catalogue.def stand there alone: compare/ has no literal of an id, of a title, or
of a part of one.

Adjacent literals count as one. A number, or a conversion of printf, stands for any number. A copy is a literal that

- is an id of a mistake, or a title;
- contains a title of at least LONG characters: shorter ones are ordinary words;
- has WORDS words or more and is a part of a title, in which each conversion of the literal stands for up to GAP
  characters: "%s are written %d slot%s %s their own" for "values are written 1 slot before their own".

A title that is put together from parts of fewer words is not found, unless it has a row FORM.

Exit status 1: there is a copy, or a known copy is not found.
"""
import os
import re
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CATALOGUE = os.path.join(SOURCE, "libref", "plan", "catalogue.def")
LONG, WORDS, GAP = 24, 4, 30
FEWEST_TITLES, FEWEST_LITERALS = 300, 2000  # fewer mean that the sources are not read as they should be
TITLE = {"FAULT": 1, "RECORDER_FAULT": 1, "FAMILY": 1, "FORM": 0, "WEIGHT": 1, "WEIGHT_OF": 2}  # which of its strings

STRING = r'"(?:\\.|[^"\\\n])*"'
TOKEN = re.compile(rf"/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\\n])+'|{STRING}", re.S)
NUMBER = r"%(?:\d+\$)?[-+ #0]*\d*(?:\.(?:\d+|\*))?(?:ll)?[a-z]|\b\d+(?:\.\d+)?(?:e[-+]?\d+)?\b"
MARK = "\1"  # a number


def literals(text):
    """The literals of C code: (its line, what it says)."""
    found, end = [], None
    text = re.sub(r"^[ \t]*#[ \t]*include[^\n]*", "", text, flags=re.M)
    for m in TOKEN.finditer(text):
        if m[0][0] != '"':
            continue
        if end is not None and not text[end:m.start()].strip():
            found[-1][1] += m[0][1:-1]
        else:
            found.append([text.count("\n", 0, m.start()) + 1, m[0][1:-1]])
        end = m.end()
    return found


def rows():
    """Ids and titles of the catalogue. Of `weights`, the long titles only: the others are ordinary words."""
    ids, titles = set(), set()
    text = re.sub(r"/\*.*?\*/", "", open(CATALOGUE, encoding="utf-8").read(), flags=re.S)
    for kind, row in re.findall(r"^([A-Z_]+)\((.*?)\)\n(?=[A-Z#\n])", text, flags=re.M | re.S):
        if kind not in TITLE:
            continue
        strings = [s[1:-1] for s in re.findall(STRING, row)]
        title = strings[TITLE[kind]]
        if TITLE[kind] == 1 and kind != "WEIGHT":
            ids.add(strings[0])
        if not kind.startswith("WEIGHT") or len(title) >= LONG:
            titles.add(title)
    return ids, titles


def marked(text):
    return re.sub(NUMBER, MARK, text)


class Copies:
    def __init__(self, ids, titles):
        self.ids, self.equal = ids, {marked(t) for t in titles}
        self.long = re.compile("|".join(rf"(?<!\w){re.escape(marked(t))}(?!\w)" for t in titles if len(t) >= LONG))
        self.titles = "\n".join(titles)

    def __call__(self, literal):
        if literal in self.ids or marked(literal) in self.equal:
            return True
        if len(literal) >= LONG and self.long.search(marked(literal)):
            return True
        fixed = re.split(NUMBER, literal.strip())
        if len(re.findall(r"[A-Za-z][a-z]+", " ".join(fixed))) < WORDS or any(f not in self.titles for f in fixed):
            return False
        part = rf".{{0,{GAP}}}?".join(re.escape(f) for f in fixed)
        return re.search(rf"(?<!\w){part}(?!\w)", self.titles) is not None


def self_test(is_copy):
    for literal in ("R13", "RoPE computes %s in %s", "weights of layer %d", "; and pairs columns 2i and 2i + 1",
                    "%s are written %d slot%s %s their own", "attention reads keys and values of layer %d: %s and %s",
                    "attention reads %s in place of %s of its own layer", "the part%s of rank%s %s of %d",
                    "in the worst step, positions after the first call are shifted by +%d"):
        if not is_copy(literal):
            sys.exit(f"titles.py: not found: {literal}")
    for literal in ("R", "RoPE", "not in the candidate", "keys and values", "%s in %s", "%d of %d tokens"):
        if is_copy(literal):
            sys.exit(f"titles.py: found, but it is no copy: {literal}")


def main():
    ids, titles = rows()
    is_copy = Copies(ids, titles)
    self_test(is_copy)
    n, copies = 0, 0
    for folder, _, names in sorted(os.walk(os.path.join(SOURCE, "compare"))):
        for name in sorted(names):
            if not name.endswith((".c", ".h", ".def", ".inc")):
                continue
            file = os.path.join(folder, name)
            for line, literal in literals(open(file, encoding="utf-8").read()):
                n += 1
                if is_copy(literal):
                    copies += 1
                    print(f"{os.path.relpath(file, SOURCE)}:{line}: \"{literal}\"")
    if len(titles) < FEWEST_TITLES or n < FEWEST_LITERALS:
        sys.exit(f"titles.py: {len(titles)} titles and {n} literals: the sources were not read")
    if copies:
        sys.exit("words of catalogue.def as literals: print its row (VN_TITLE, VN_FORM)")
    print(f"none of {n} literals is a copy of {len(ids)} ids and {len(titles)} titles")


main()
