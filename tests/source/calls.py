#!/usr/bin/env python3
"""calls.py BUILD | --map | --circles | --parameters: the folders of the four rooms depend on each other in one
direction, that of ORDER.

Reads every source file's includes, and the symbols of its object file under BUILD (nm), and checks:

  - a file includes headers of its own folder, or of one below it: one that comes before it in ORDER; in compare, one
    that its folder links (compare/CMakeLists.txt)
  - it uses functions and data of its own folder, or of one below it
  - no circle of calls between the files of a folder

--map prints the picture of specs/develop.md: the folders from the top down, and which others each includes;
libref/base, libref/plan and compare/comparison are left out, since almost every folder includes them. It is checked,
too, that the page has the picture as it is.

--circles prints files that include each other in a circle, of the four rooms and of the Python package. X.h and
X_internal.h count as part of X.c. What is used by its name alone, as a call-back or a type that is only declared, needs
no include, and makes no circle.

--parameters prints the functions with more than MOST_PARAMETERS parameters, longest list first, and their number.

Exit status 1: a rule is broken; each line names the file, what it uses, and where that is.
"""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys

# From the floor to the roof. A folder may use those before it. A room's top folder is the room's
# name. The folders of compare follow, as compare/CMakeLists.txt declares them: of those, one may
# use only what it links.
ORDER = """
libref/base libref/plan libref/family libref/model libref/text libref/ops libref/exec libref
libgpu
capture/base capture/file capture/recording capture/view capture/names capture/store capture/run capture/import
capture/show capture
""".split()
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FEWEST = 300  # object files: with fewer, BUILD is not a complete build
MOST_PARAMETERS = 6
PACKAGE = "capture/python/vernier_parity"
FUNCTION = r"^ *(?!(?:if|for|while|switch|else)\b)[a-zA-Z_][^;{}=#]*?\b(\w+)\(([^{};]*)\)\s*\{"


def compare_folders():
    """compare's folders in their order, each with the folders that it links, directly or through another."""
    reach = {}
    with open(f"{SOURCE}/compare/CMakeLists.txt", encoding="utf-8") as f:
        for name, uses in re.findall(r"^folder\((\w+)([\w ]*)\)$", f.read(), re.M):
            direct = ["compare/" + use for use in uses.split()]
            reach["compare/" + name] = set(direct).union(*(reach[folder] for folder in direct))
    return reach


REACH = compare_folders()
ORDER += [*REACH, "compare"]
RANK = {folder: i for i, folder in enumerate(ORDER)}


def may_use(folder, other):
    """Whether a file of one folder may use what is in the other."""
    if RANK[other] > RANK[folder]:
        return False
    return folder == other or folder not in REACH or other not in REACH or other in REACH[folder]


def objects(build):
    for room in "libref", "libgpu", "capture", "compare":
        for path in glob.glob(f"{build}/{room}/CMakeFiles/v*.dir/**/*.o", recursive=True):  # vn_* and the programs
            inside = path.split(".dir/", 1)[1]
            if os.path.exists(os.path.join(SOURCE, room, inside[:-2])):  # not generated, and not of a file that is gone
                yield f"{room}/{inside[:-2]}", path


def includes():
    """Every header that a file of the rooms includes, of ours."""
    for room in "libref", "libgpu", "capture", "compare":
        for path in glob.glob(f"{SOURCE}/{room}/**/*.[ch]", recursive=True):
            file = os.path.relpath(path, SOURCE)
            with open(path, encoding="utf-8") as f:
                for other in re.findall(r'^#include "([^"]+)"', f.read(), re.M):
                    yield file, other


def symbols(build):
    """Who defines each global symbol, and what each file uses."""
    defined, used = {}, collections.defaultdict(set)
    files = {path: file for file, path in objects(build)}
    nm = subprocess.run(["nm", "--print-file-name", *files], capture_output=True, text=True, check=True)
    for line in nm.stdout.splitlines():
        path, symbol = line.rsplit(":", 1)
        kind, name = symbol.split()[-2:]
        if kind in "TDBRV":
            defined[name] = files[path]
        elif kind == "U":
            used[files[path]].add(name)
    return defined, used


def circles(edges):
    """Strongly connected components of more than one node (Tarjan)."""
    index, low, on, stack, found = {}, {}, set(), [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in sorted(edges[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            component = []
            while not component or component[-1] != v:
                component.append(stack.pop())
                on.discard(component[-1])
            if len(component) > 1:
                found.append(sorted(component))

    for v in sorted(edges):
        if v not in index:
            visit(v)
    return found


def unit(file):
    """The source that a file belongs to, without its ending."""
    own = re.sub(r"(_internal)?\.[ch]$", "", file)
    return own if os.path.exists(f"{SOURCE}/{own}.c") else file[:-2]


def imports():
    """Every module of the Python package that a module of it imports, for types alone too."""
    modules = {os.path.relpath(path, f"{SOURCE}/{PACKAGE}")[:-3]: path
               for path in glob.glob(f"{SOURCE}/{PACKAGE}/**/*.py", recursive=True)}
    for module, path in modules.items():
        with open(path, encoding="utf-8") as f:
            for dots, name, what in re.findall(r"^\s*from (\.+)(\S*) import ([^(\n]+|\([^)]*\))", f.read(), re.M):
                folder = os.path.normpath(os.path.join(os.path.dirname(module), "../" * (len(dots) - 1)))
                parts = [name] if name else re.findall(r"(\w+)(?: as \w+)?", what)
                for part in parts:
                    other = os.path.normpath(os.path.join(folder, part.replace(".", "/")))
                    if other in modules:
                        yield f"{PACKAGE}/{module}", f"{PACKAGE}/{other}"


def file_circles():
    """Files that include or import each other in a circle, the longest circle first."""
    between = collections.defaultdict(set)
    for one, other in [*((unit(a), unit(b)) for a, b in includes()), *imports()]:
        if one != other:
            between[one].add(other)
            between[other].update()
    return sorted(circles(between), key=len, reverse=True)


def parameters():
    """(number of parameters, file, name) of every function that has more than MOST_PARAMETERS, most first."""
    found = []
    for room in "libref", "libgpu", "capture", "compare":
        for path in glob.glob(f"{SOURCE}/{room}/**/*", recursive=True):
            if not path.endswith((".c", ".h", ".inc")):
                continue
            with open(path, encoding="utf-8") as f:
                text = re.sub(r"/\*.*?\*/|//[^\n]*|__attribute__\(\((?:[^()]|\([^()]*\))*\)\)", " ", f.read(),
                              flags=re.S)
            for name, of in re.findall(FUNCTION, text, re.M):
                while of != (of := re.sub(r"\([^()]*\)|\[[^][]*\]", "", of)):
                    pass
                found.append((of.count(",") + 1, os.path.relpath(path, SOURCE), name))
    return sorted((row for row in found if row[0] > MOST_PARAMETERS), reverse=True)


def picture():
    """Which folders include which, drawn."""
    uses = collections.defaultdict(set)
    for file, other in includes():
        uses[os.path.dirname(file)].add(os.path.dirname(other))
    lines, room = [], None
    for folder in reversed(ORDER):
        if folder != room and "/" in folder and folder.split("/")[0] != room:
            room = folder.split("/")[0]
        own = folder.split("/")[0]
        below = [f for f in reversed(ORDER)
                 if f in uses[folder] - {folder, "libref/base", "libref/plan", "compare/comparison"}]
        if not below and folder not in uses:
            continue
        inside = [f.split("/")[-1] for f in below if f.split("/")[0] == own]
        outside = [f for f in below if f.split("/")[0] != own]
        text = ", ".join(inside) + ("; " if inside and outside else "") + ", ".join(outside)
        if "/" not in folder and lines:
            lines.append("")
        name = folder if "/" not in folder else "  " + folder.split("/")[1]
        line = f"{name:12} {'-> ' + text if text else ''}".rstrip()
        while len(line) > 98:
            cut = line.rindex(", ", 0, 98) + 1
            lines.append(line[:cut])
            line = " " * 16 + line[cut + 1:]
        lines.append(line)
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(usage="calls.py BUILD | --map | --circles | --parameters", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", metavar="BUILD", nargs="?", help="folder of a complete build")
    p.add_argument("--map", action="store_true", help="print the picture of specs/develop.md")
    p.add_argument("--circles", action="store_true", help="print circles of files")
    p.add_argument("--parameters", action="store_true", help="print functions with many parameters")
    o = p.parse_args()
    if (o.build is not None) + o.map + o.circles + o.parameters != 1:
        p.error("give BUILD, --map, --circles or --parameters")
    if o.circles:
        found = file_circles()
        for circle in found:
            print(f"{len(circle)} files: " + ", ".join(circle))
        print(f"{len(found)} circles of files")
        return 0
    if o.parameters:
        found = parameters()
        for n, file, name in found:
            print(f"{n:3} {file} {name}")
        print(f"{len(found)} functions with more than {MOST_PARAMETERS} parameters")
        return 0
    if o.map:
        print(picture(), end="")
        return 0
    defined, used = symbols(o.build)
    files = {file for file, _ in objects(o.build)}
    if len(files) < FEWEST:
        sys.exit(f"{len(files)} object files under {o.build}: is it a whole build?")
    between = collections.defaultdict(set)
    bad = calls = 0
    for file, other in includes():
        above, below = os.path.dirname(file), os.path.dirname(other)
        if above in RANK and below in RANK and not may_use(above, below):
            print(f"{file} includes {other}, whose folder is not below its own")
            bad += 1
    for file in sorted(files):
        folder = os.path.dirname(file)
        if folder not in RANK:
            sys.exit(f"{file}: its folder has no place in ORDER")
        for name in sorted(used[file]):
            other = defined.get(name)
            if not other or other == file:
                continue
            calls += 1
            below = os.path.dirname(other)
            if below == folder:
                between[file].add(other)
            elif not may_use(folder, below):
                print(f"{file} uses {name} of {other}, whose folder is not below its own")
                bad += 1
    with open(os.path.join(SOURCE, "specs/develop.md"), encoding="utf-8") as f:
        if picture() not in f.read():
            print("specs/develop.md: the map is not what tests/source/calls.py --map prints")
            bad += 1
    for circle in circles(between):
        print(f"{len(circle)} files use each other in a circle: " + ", ".join(circle))
        bad += 1
    print(f"{len(files)} files, {calls} uses of another file's symbols, {bad} against the order")
    return bad != 0


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    sys.exit(main())
