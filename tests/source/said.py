#!/usr/bin/env python3
"""said.py: a string that an input may have given is printed by vn_say (libref/base/say.h), or by a function that
escapes for its form (markup.h, json.h), and by nothing else: a raw newline in it would forge a line of the report.

Refused are, in the program's C files, fprintf and vfprintf of a string or a character, and fputs, fwrite of text that
is not a literal. So are printf, puts and putchar: vn_say stops at the first part that is lost, where these would print
the rest of the line. A file that may do so is listed here with its reason; one that no longer does is refused,
too. Exit status 1: something is refused.
"""
import os
import pathlib
import re
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OTHERS = re.compile(r"capture/(examples|include|llama\.cpp)/|libgpu/tools/")  # programs and headers of their own
MAY = {
    "libref/base/say.c": "is vn_say",
    "libref/base/json.c": "JSON, which it escapes",
    "libref/base/worker.c": "what a worker printed, through the same functions",
    "libref/base/options_print.c": "words of the tables of options",
    "libref/base/cluster_mpi.c": "what a rank printed, through the same functions",
    "libref/plan/fault_page.c": "words of the catalogue",
    "libref/text/split.c": "a pattern, into memory",
    "libref/model/synth.c": "numbers of a file",
    "libgpu/pipeline_cache.c": "bytes of a file",
    "capture/show/show_text.c": "vn_utf8_shown",
    "capture/show/show_values.c": "numbers of a file",
    "compare/cmd_calibrate.c": "YAML of judge/calibrate.c, from memory",
    "compare/cmd_help.c": "pages of the manual",
    "compare/compare_folders.c": "what is asked, for a digest",
    "compare/judge/calibrate.c": "YAML, whose strings it escapes",
    "compare/many/many.c": "a report that was kept, and numbers, for another process",
    "compare/many/many_html.c": "the page's head",
    "compare/many/many_markdown.c": "Markdown, from memory",
    "compare/report/report_markdown.c": "Markdown, from memory",
    "compare/report/report_page.c": "the page's parts",
    "compare/table/table_report.c": "the page's head",
    "compare/text/json.c": "the end of a line of JSON",
    "compare/text/markup.c": "escapes for XML, HTML, CSV and Markdown",
}
CALL = re.compile(r"(?<![A-Za-z_])(printf|putchar|fprintf|vfprintf|fputs|puts|fwrite)\(")
STRING = r'"(?:\\.|[^"\\])*"'
OF_TEXT = re.compile(r"%[-+ #0']*[\d*]*(?:\.[\d*]*)?l?[sc]")
# A literal, macros between literals, or a choice of literals and colours.
LITERAL = re.compile(rf"(?:[^?]*\?\s*)?"
                     rf"(?:{STRING}\s*|PRI\w+\s*|VERNIER_VERSION\s*|VN_[A-Z_]+(?:\([^()]*\))?\s*|PLAIN\(p\)\s*)+"
                     rf"(?::\s*(?:[^?]*\?\s*)?(?:{STRING}|\s)+)*")


def arguments(code, at):
    """The arguments of a call, whose ( is just before."""
    found, start, depth = [], at, 0
    while True:
        if code[at] in "\"'":
            at = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'').match(code, at).end()
            continue
        if depth == 0 and code[at] in ",)":
            found.append(code[start:at].strip())
            start = at + 1
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            if depth == 0:
                return found
            depth -= 1
        at += 1


def calls_of(code):
    """The calls to refuse: (line, text)."""
    for m in CALL.finditer(code):
        name, args = m[1], arguments(code, m.end())
        what = args[1] if name in ("fprintf", "vfprintf") and len(args) > 1 else args[0]
        if name in ("printf", "puts", "putchar"):
            bad = True
        elif name in ("fprintf", "vfprintf"):
            bad = OF_TEXT.search(what) is not None or not LITERAL.fullmatch(what)
        else:
            bad = not LITERAL.fullmatch(what)
        if bad:
            yield code.count("\n", 0, m.start()) + 1, " ".join(code[m.start():m.end() + 60].split())


def without_comments(code):
    return re.sub(rf'({STRING}|\'(?:\\.|[^\'\\])+\')|/\*.*?\*/|//[^\n]*',
                  lambda m: m[1] or re.sub(r"[^\n]", " ", m[0]), code, flags=re.S)


def main():
    files = [str(f.relative_to(SOURCE)) for room in ("libref", "libgpu", "capture", "compare")
             for f in sorted(pathlib.Path(SOURCE, room).rglob("*")) if f.suffix in (".c", ".inc")]
    files = [f for f in files if not OTHERS.match(f)]
    bad, idle, said = 0, set(MAY), 0
    assert list(calls_of('fprintf(out, "%-*s|", 3, x);')) and list(calls_of("fputs(name, out);"))
    assert list(calls_of('printf("Written:");')) and list(calls_of("putchar('\\n');"))
    assert not list(calls_of('fputs(n ? ", " : "", out); fprintf(out, "%d" "x", n);'))
    for f in files:
        with open(os.path.join(SOURCE, f), encoding="utf-8") as text:
            code = without_comments(text.read())
        for m in re.finditer(r"\bvn_say\(", code):
            said += 1
            for breaks in arguments(code, m.end())[2:]:
                if re.search(r"\\[ntr]", breaks):
                    bad += 1
                    print(f"{f}: vn_say would show the newline of {breaks}: it belongs to the format")
        for line, call in calls_of(code):
            idle.discard(f)
            if f not in MAY:
                bad += 1
                print(f"{f}:{line}: {call} ...: print it with vn_say")
    for f in sorted(idle):
        print(f"said.py: {f} prints no such text any more")
    print(f"{len(files)} files, {said} calls of vn_say, {bad} strings printed otherwise")
    assert said > 250, "the sources are not read as they should be"
    return 1 if bad or idle else 0


if __name__ == "__main__":
    sys.exit(main())
