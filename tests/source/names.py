#!/usr/bin/env python3
"""names.py: one name, one meaning. A type, enumerator or macro of ours (vn_..., VN_...) is defined in one place of the
tree, a function is declared in one header, and a type of a .c file's own (without vn_) is defined in one .c file and
has no other type's name: `map` beside vn_map.
What a comment or a page names exists.

Reads the sources of the four rooms and lists, with its places, each name that two of them define: struct, enum and
union types, typedefs (of functions, too), enumerators, macros of headers; each function that two headers declare; and
each private type that two .c files define. ALIKE lists the private types that mean the same in every such file.
Left out: the files for other programs (capture/include, examples, llama.cpp), and `typedef struct vn_x vn_x;`, which
only announces a type.

The comments of C and shaders, and the pages of specs/, may name only functions and types (vn_...) that are in the
code, and source files that are in the tree. X and NAME are placeholders: dump_X.c, vn_dump_open_X.

Exit status 1: a name is defined twice, or does not exist.
"""
import argparse
import collections
import os
import re
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOREIGN = ("capture/include/", "capture/examples/", "capture/llama.cpp/", "capture/python/")
FEWEST = 1500  # names: fewer mean that the sources are not read as they should be
FEWEST_PRIVATE = 150
OURS, PRIVATE = r"vn_\w+", r"(?!vn_)[a-z]\w*"
ALIKE = {
    "settings": "compare/cmd_*.c: what the command line asks of this command",
    "options": "capture/cmd_*.c: what the command line asks of this command",
    "run": "compare/replay/: vn_recompute_plan, a plan being recomputed",
}


def files():
    for room in "libref", "libgpu", "capture", "compare":
        for folder, _, names in os.walk(os.path.join(SOURCE, room)):
            for name in sorted(names):
                file = os.path.relpath(os.path.join(folder, name), SOURCE)
                if name.endswith((".c", ".h", ".inc")) and not file.startswith(FOREIGN):
                    yield file


def without_comments(text):
    """Comments and what is in quotes become blanks, so that lines keep their numbers."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


def without_macros(text):
    """REAL(vn_x), a name for each of two precisions (libref/ops/real.h), becomes vn_x and blanks."""
    return re.sub(r"\bREAL\((vn_\w+)\)", lambda m: m[1].ljust(len(m[0])), text)


def without_directives(text):
    return re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.M)


def types(code, word):
    """(offset, name) of every struct, union, enum and typedef whose name matches the word."""
    for m in re.finditer(rf"\b(?:struct|union|enum)\s+({word})\s*\{{", code):
        yield m.start(1), m[1]
    for m in re.finditer(r"\btypedef\b([^;{}]*);", code):  # of functions, pointers and other types
        said = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", lambda a: " " * len(a[0]), m[1])
        name = re.search(
            rf"\(\s*\*?\s*({word})\s*\)\s*\(|\b({word})\s*\((?!\s*\*)|\b({word})\s*(?:\[[^\]]*\])*\s*$", said)
        if name and not re.fullmatch(rf"\s*(?:struct|union|enum)\s+({word})\s+\1\s*", said):
            yield m.start(1) + name.start(name.lastindex), name[name.lastindex]
    for m in re.finditer(r"\btypedef\s+(?:struct|union|enum)\s*\{", code):  # a type without a tag
        depth, at = 1, m.end()
        while depth and at < len(code):
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        name = re.match(rf"\s*({word})", code[at:])
        if name:
            yield at + name.start(1), name[1]


def definitions(text, header):
    """(offset, name) of everything that a file defines for others."""
    for name in sorted(set(re.findall(r"^#\s*define\s+(VN_\w+)", text, re.M)) if header else ()):
        yield text.index(name), name  # once, whichever branch of an #if it is in
    code = without_directives(text)
    yield from types(code, OURS)
    for m in re.finditer(r"\benum(?:\s+\w+)?\s*\{([^{}]*)\}", code):
        for e in re.finditer(r"(?:^|,)\s*(VN_\w+)\b(?!\s*\()", m[1]):
            yield m.start(1) + e.start(1), e[1]


def functions(text):
    """(offset, name) of every function that a header declares or defines."""
    code = without_directives(text)
    while "{" in code:  # a body becomes the end of a declaration
        inner = re.sub(r"\{[^{}]*\}", lambda m: re.sub(r"[^\n]", " ", m[0][:-1]) + ";", code)
        if inner == code:
            break
        code = inner
    found = {}
    for m in re.finditer(r"(?:^|;)([^;]*?\b(vn_\w+)\s*\([^;]*)(?=;)", code):
        if not re.match(r"\s*(?:typedef\b|(?:struct|union|enum)\b[^(]*\(\s*\*)", m[1]):
            found.setdefault(m[2], m.start(2))
    return [(at, name) for name, at in found.items()]


def only_comments(text):
    """What is no comment becomes empty lines."""
    parts = re.split(r"(/\*.*?\*/|//[^\n]*)", text, flags=re.S)
    return "".join(part if i % 2 else "\n" * part.count("\n") for i, part in enumerate(parts))


def missing_names():
    """(place, name) of what comments and pages name, but the tree does not have."""
    paths, code, prose = set(), set(), []
    for top in "libref", "libgpu", "capture", "compare", "tests", "specs", "fixtures":
        for folder, _, names in os.walk(os.path.join(SOURCE, top)):
            for file in (os.path.relpath(os.path.join(folder, name), SOURCE) for name in names):
                paths.update(file[m.end():] for m in re.finditer(r"^|/", file))
                if not re.search(r"\.(c|h|def|inc|comp|glsl)$|^specs/\w+\.md$", file):
                    continue
                with open(os.path.join(SOURCE, file), encoding="utf-8") as f:
                    text = f.read()
                if file.endswith(".md"):
                    prose.append((file, text))
                else:
                    prose.append((file, only_comments(text)))
                    code.update(re.findall(r"\bvn_\w+", without_comments(text)))
    code |= {name + suffix for name in code for suffix in ("_f32", "_f64")}  # of REAL(name)
    code |= {name[:m.end()] for name in code for m in re.finditer("_", name)}  # "vn_sentence_ and ..."
    for file, text in prose:
        for m in re.finditer(r"\bvn_[a-z0-9_]+\b"
                             r"|(?<![\w./*{<-])(?:\w+/)*[a-z][a-z0-9_]+\.(?:c|h|def|inc|comp|glsl)\b(?!\.?\w)", text):
            if m[0] not in (paths if "." in m[0] else code):
                yield f"{file}:{text.count(chr(10), 0, m.start()) + 1}", m[0]


def lines_of(file, text, found):
    """(name, "file:line") of everything found in a file."""
    for at, name in found:
        yield name, f"{file}:{text.count(chr(10), 0, at) + 1}"


argparse.ArgumentParser(usage="names.py", description=__doc__,
                        formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
places, private, ours = collections.defaultdict(list), collections.defaultdict(dict), {}
for file in files():
    with open(os.path.join(SOURCE, file), encoding="utf-8") as f:
        text = without_macros(without_comments(f.read()))
    header = file.endswith(".h")
    for name, line in lines_of(file, text, [*definitions(text, header), *(functions(text) if header else ())]):
        places[name].append(line)
    ours.update(lines_of(file, text, types(without_directives(text), OURS)))
    for name, line in lines_of(file, text, () if header else types(without_directives(text), PRIVATE)):
        private[name].setdefault(file, line)
if len(places) < FEWEST or len(private) < FEWEST_PRIVATE:
    sys.exit(f"only {len(places)} names and {len(private)} private types found in {SOURCE}")
twice = {name: where for name, where in sorted(places.items()) if len(where) > 1}
shared = {name: list(where.values()) for name, where in sorted(private.items()) if len(where) > 1}
misleading, idle = [n for n in shared if n not in ALIKE], [n for n in ALIKE if n not in shared]
confused = [n for n in sorted(private) if "vn_" + n in ours]
for name in confused:
    print(f"{name}, a private type of {', '.join(private[name].values())}, has the name of vn_{name}, "
          f"{ours['vn_' + name]}")
for name, where in twice.items():
    print(f"{name} is defined {len(where)} times: {', '.join(where)}")
for name in misleading:
    print(f"{name}, a private type, is defined in {len(shared[name])} files: {', '.join(shared[name])}")
for name in idle:
    print(f"{name} stands in ALIKE, but no two files define it")
missing = sorted(missing_names())
for place, name in missing:
    print(f"{place} names {name}, which does not exist")
print(f"{len(places)} names, {len(twice)} of them defined twice; {len(private)} private types, "
      f"{len(misleading)} of them defined in several files, {len(confused)} named as another; "
      f"{len(missing)} mentioned that do not exist")
sys.exit(1 if twice or confused or misleading or idle or missing else 0)
