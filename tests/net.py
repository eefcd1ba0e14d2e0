#!/usr/bin/env python3
"""net.py OLD NEW --folder FOLDER [--cases GLOB] [--all] [--words] [--renamed FILE] [--but EXPRESSION]... [--jobs N]: do
two builds give the same answers?

Both programs run the same commands on the same files, in an empty folder: exit statuses, what they print, and every
file that they write are to be equal, byte for byte (a recording: what `show` says of it). --words leaves the display
sentences of explanations out, and all that is no JSON: numbers, ids, findings and statuses remain. --renamed: fields
that NEW names otherwise, as a JSON object such as {"checkpoints.limits.used": "limit_fraction"}; the version of the
schema may differ, too, and nothing else. --but: text that matches is left out of both; a larger catalogue needs
--but 'tried"?: \\d+' --but 'none of \\d+ known' --but 'runner-up .* worse' --but '"others": ?\\[[^]]*\\]'.

The cases are made once, by OLD, in FOLDER:
  catalogue/FAMILY/FAULT   each fault of the catalogue, in each family that it fits: in f32, f16 or bf16, at once or in
                           steps, all checkpoints recorded or the projections alone or the layers' outputs alone;
                           `explain` and `compare`, each in every form: text, JSON, HTML, Markdown, JUnit, CSV
  correct/FAMILY/FORMAT    the same without a fault
  several/FAMILY/WHAT      of these: several candidates, --vote, --baseline, --shard, folders whole and in parts with
                           `merge`, `table`, `weights`
  SCRIPT/NUMBER            what tests/SCRIPT hands to the commands of READERS: dumps of another engine, ranks, edited
                           and broken files
What OLD answers is kept there, too: a second run of the same OLD runs NEW alone. Default: every eighth case of each
group. Exit status 0: the same; 1: not.
"""
import argparse
import fnmatch
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

TESTS = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(os.path.dirname(TESTS), "fixtures")
FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen3_5_text")
POINTS = ("*", "*", "{embed,*_proj,*_norm,*attn_context,*attn_out,*attn_residual,*mlp_act,*.output,logits}",
          "{embed,layer*.output,logits}")
SCRIPTS = ("parity/parity_explain_unrelated.py", "parity/parity_foreign.py") + tuple(f"cli/{name}.sh" for name in (
    "explain", "explain_vocabulary", "steps", "calls", "align", "many", "many_folders", "parts", "folders", "baseline",
    "weights", "show_json", "show_batch", "values", "table", "import", "import_kinds", "reports", "csv", "formats",
    "endings", "strict", "bitwise", "second_names", "older_recording", "misshapen", "not_finite", "identities",
    "digests", "trust", "vacuous", "layout_match"))
READERS = ("compare", "explain", "weights", "show", "import", "table", "merge", "limits", "points")
OUTPUTS = ("-o", "--output", "--summary")
SENTENCES = {"words", "details", "against", "contradicted_by", "separate", "separating_input", "looks",
             "error_shape"}  # of explanations, in this version's names and in those of older ones


def run(*args, **more):
    return subprocess.run(args, capture_output=True, text=True, errors="surrogateescape", stdin=subprocess.DEVNULL,
                          **more)


def forms(name, *endings):
    """Options for a report in each form, or in those of several candidates, and the text on stdout."""
    files = [x for form in endings or ("json", "html", "md", "xml", "csv") for x in ("-o", f"{name}.{form}")]
    return [*files, "--format", "text", "-o", "-"]


# ---- recording -----------------------------------------------------------------------------------


def ids(n):
    with open(os.path.join(FIXTURES, "prompts", "p070.ids"), encoding="ascii") as f:
        return f.read().strip().split(",")[:n]


def capture(program, out, model, precision, steps, points, *more):
    prompt = ["--ids", ",".join(ids(58)), "--force-ids",
              ",".join(ids(70)[58:])] if steps else ["--ids", ",".join(ids(70))]
    done = run(program, "capture", "ref", model, *prompt, "--points", points, "--precision", precision, "--threads",
               "1", "--force", "-o", out, *more)
    return done.returncode == 0


def catalogue(program, folder, family):
    """A case for each fault that fits; a fault that cannot be made in that format is left out."""
    model, cases, places, at_once = os.path.join(FIXTURES, family + "-trained"), {}, {}, []
    for line in run(program, "points", "--faults=*", model).stdout.splitlines():
        fault, name = line.split()
        places.setdefault(fault, []).append(name)
    home = os.path.join(folder, "catalogue", family)
    os.makedirs(home, exist_ok=True)
    for fault, names in sorted({"": [""], **places}.items()):
        n = zlib.crc32(f"{family} {fault}".encode())
        middle = [x for x in names if x.startswith("layer1.")] or names
        for precision in [("f32", "f16", "bf16")[n // 7 % 3]] if fault else ("f32", "f16", "bf16"):
            steps, points = n // 3 % 3 == 0, POINTS[n // 101 % 4]
            ref, out = os.path.join(home, f"ref.{steps}.h5"), os.path.join(home, f"{fault or precision}.h5")
            if not os.path.exists(ref):
                capture(program, ref, model, "f32", steps, "*")
            if capture(program, out, model, precision, steps, points,
                       *(["--inject", f"{fault}@{middle[n % len(middle)]}"] if fault else [])):
                name = f"catalogue/{family}/{fault}" if fault else f"correct/{family}/{precision}"
                pair = [ref, out, "--model", model, "--allow", "missing"]
                at_once += [] if steps else [out]
                cases[name] = [["explain", *pair, *forms("explain")], ["compare", *pair, *forms("compare")]]
    cases.update(several(home, family, model, at_once))
    return cases


def several(home, family, model, found):
    """Cases of more than one pair."""
    ref, other, cases = os.path.join(home, "ref.False.h5"), os.path.join(FIXTURES, "qwen2-trained"), {}
    many = found[::max(1, len(found) // 5)][:5]
    folders = os.path.join(home, "folders")
    for side in ("refs", "cands"):
        os.makedirs(os.path.join(folders, side), exist_ok=True)
    for i, path in enumerate(many):
        shutil.copyfile(ref, os.path.join(folders, "refs", f"p{i}.h5"))
        shutil.copyfile(path, os.path.join(folders, "cands", f"p{i}.h5"))
    refs, cands, at = os.path.join(folders, "refs"), os.path.join(folders, "cands"), f"several/{family}/"
    allow = ["--allow", "missing,extra"]
    columns = forms("r", "json", "html", "md")
    cases[at + "candidates"] = [["compare", ref, *many, *allow, *columns]]
    cases[at + "candidates_model"] = [["compare", ref, *many[:2], "--model", model, *allow, *columns]]
    cases[at + "vote"] = [["compare", "--vote", *many[:4], *allow, *columns]]
    cases[at + "baseline"] = [["compare", ref, many[0], *allow, "-o", "known.json"],
                              ["compare", ref, many[1], *allow, "--baseline", "known.json", *forms("r")]]
    cases[at + "folders"] = [["compare", refs, cands, *allow, "--summary", "whole.json", *forms("r")]]
    cases[at + "parts"] = [*(["compare", refs, cands, *allow, "--part", f"{i}/2", "--summary", f"{i}.json"]
                             for i in (1, 2)), ["merge", "1.json", "2.json", "-o", "whole.json"]]
    cases[at + "table"] = [["table", ref, *many[:2], "--points", "layer0.*"]]
    cases[at + "weights"] = [["weights", model, other, *forms("r")[:2]], ["weights", model, other]]
    return cases


def keep(store, path):
    """A file or a folder, kept under its digest."""
    digest = hashlib.sha1()
    for at, _, files in (sorted(os.walk(path)) if os.path.isdir(path)
                         else [(os.path.dirname(path), [], [os.path.basename(path)])]):
        for name in sorted(files):
            digest.update(name.encode() if os.path.isdir(path) else b"")
            with open(os.path.join(at, name), "rb") as f:
                digest.update(f.read())
    to = os.path.join(store, digest.hexdigest()[:20] + os.path.splitext(path)[1])
    if not os.path.exists(to):
        (shutil.copytree if os.path.isdir(path) else shutil.copyfile)(path, to)
    return to


def is_kept(path):
    """Is it a file, or a folder of files and folders?"""
    if not os.path.isdir(path):
        return os.path.isfile(path)
    return all(os.path.isfile(os.path.join(at, name)) for at, _, names in os.walk(path) for name in names)


def harvested(args):
    """Acts as the program for a script: keeps the files of a command, then runs the program."""
    store, program = os.environ["NET_STORE"], os.environ["NET_PROGRAM"]
    if args and args[0] in READERS:
        kept, output = [args[0]], False
        for a in args[1:]:
            if output:  # is written in the folder where the command runs
                kept.append(a if a == "-" else os.path.basename(a.rstrip("/")))
            else:
                kept.append(",".join(os.path.abspath(x) if os.path.abspath(x).startswith(FIXTURES)
                                     else keep(store, x) if is_kept(x) else x for x in a.split(",")))
            output = a in OUTPUTS
        line = json.dumps([kept])
        with open(os.path.join(store, "cases"), "a", encoding="utf-8") as f:
            f.write(line + "\n")
    os.execv(program, [program, *args])


def of_script(program, folder, script):
    store = os.path.join(folder, "kept", script.replace("/", "."))
    os.makedirs(store)
    stand_in = os.path.join(store, "vernier")
    with open(stand_in, "w", encoding="utf-8") as f:
        f.write(f'#!/bin/sh\nexec "{sys.executable}" "{os.path.abspath(__file__)}" --harvest "$@"\n')
    os.chmod(stand_in, 0o755)
    env = {**os.environ, "NET_STORE": store, "NET_PROGRAM": os.path.abspath(program), "VERNIER": stand_in,
           "PYTHON": sys.executable}
    if script.endswith(".sh"):
        run("bash", os.path.join(TESTS, "cli", "check.sh"), os.path.basename(script)[:-3], env=env)
    else:
        run(sys.executable, os.path.join(TESTS, script), stand_in, "--all", env=env)
    path = os.path.join(store, "cases")
    lines = sorted(set(open(path, encoding="utf-8").read().splitlines())) if os.path.exists(path) else []
    return {f"{script}/{i:04}": json.loads(line) for i, line in enumerate(lines)}


def record(program, folder, jobs):
    os.makedirs(folder, exist_ok=True)
    cases = {}
    with ThreadPoolExecutor(jobs) as pool:
        for some in pool.map(lambda f: catalogue(program, folder, f), FAMILIES):
            cases.update(some)
        for some in pool.map(lambda s: of_script(program, folder, s), SCRIPTS):
            cases.update(some)
    with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as f:
        json.dump(cases, f, indent=0)
    return cases


# ---- comparing -----------------------------------------------------------------------------------


def contents(program, folder, name):
    """What a file says that a command wrote."""
    if name.endswith(".h5"):
        return re.sub(r'"created": "[^"]*"', "", run(program, "show", name, "--format", "json", cwd=folder).stdout)
    with open(os.path.join(folder, name), encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


def answers(program, commands):
    """The status of each command with what it printed, and every file that they wrote."""
    said = {}
    with tempfile.TemporaryDirectory() as at:
        for i, args in enumerate(commands):
            more = args[0] in ("compare", "explain", "weights") and "--threads" not in args
            done = run(program, *args, *(["--threads", "1"] if more else []), cwd=at)
            said[f"{i} {args[0]}"] = [done.returncode, done.stdout, done.stderr]
        for name in sorted(os.path.relpath(os.path.join(f, n), at) for f, _, names in os.walk(at) for n in names):
            said[name] = [0, contents(program, at, name), ""]
    # The folder of limits is that of the source tree, or of the installation, that the program was
    # built in.
    return {what: [status, *(re.sub(r"/[^\s\"]*/limits/", "limits/", text) for text in texts)]
            for what, (status, *texts) in said.items()}


def without_sentences(x):
    if isinstance(x, dict):
        return {k: without_sentences(v) for k, v in x.items() if k not in SENTENCES}
    return [without_sentences(v) for v in x] if isinstance(x, list) else x


def with_names(x, names, at=""):
    """A report of OLD with the names of NEW, in the same order."""
    if isinstance(x, list):
        return [with_names(v, names, at) for v in x]
    if not isinstance(x, dict):
        return x.split("/")[0] if at == ".schema" else x
    return {names.get(f"{at}.{k}"[1:], k): with_names(v, names, f"{at}.{k}") for k, v in x.items()}


def as_json(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def renamed(said, names):
    return {what: [status, json.dumps(with_names(json.loads(text), names), indent=1) if as_json(text) else text, error]
            for what, (status, text, error) in said.items()}


def comparable(said, words, names, but=()):
    said = {what: [status, *(functools.reduce(lambda t, x: re.sub(x, "", t), but, text) for text in texts)]
            for what, (status, *texts) in said.items()} if but else said
    if names is not None:
        said = renamed(said, names)
    if not words:
        return said
    out = {}
    for what, (status, text, _) in said.items():
        out[what] = [status]
        report = as_json(text)
        if isinstance(report, dict):
            report["explanations"] = without_sentences(report.get("explanations", []))
            out[what].append(report)
    return out


def first_difference(a, b):
    for what in [*a, *(w for w in b if w not in a)]:
        if a.get(what) == b.get(what):
            continue
        if what not in a or what not in b:
            return f"{what}: only of the {'new' if what in b else 'old'} program"
        x, y = (json.dumps(v, indent=1).splitlines() if not isinstance(v[1:2] and v[1], str)
                else [str(v[0]), *v[1].splitlines(), *v[2].splitlines()] for v in (a[what], b[what]))
        n = next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
        return f"{what}: line {n}:\n  - {' '.join(x[n:n + 1])[:500]}\n  + {' '.join(y[n:n + 1])[:500]}"
    return ""


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("old")
    args.add_argument("new")
    args.add_argument("--folder", required=True, help="where cases and OLD's answers are kept")
    args.add_argument("--cases", default="*", help="cases of these names")
    args.add_argument("--all", action="store_true", help="every case, not a sample")
    args.add_argument("--words", action="store_true", help="display sentences may differ")
    args.add_argument("--renamed", help="fields with other names in NEW")
    args.add_argument("--but", action="append", default=[], help="text that may differ")
    args.add_argument("--jobs", type=int, default=1)
    o = args.parse_args()
    names = json.load(open(o.renamed, encoding="utf-8")) if o.renamed else None
    path = os.path.join(o.folder, "cases.json")
    cases = (json.load(open(path, encoding="utf-8")) if os.path.exists(path)
             else record(o.old, os.path.abspath(o.folder), o.jobs))
    with open(o.old, "rb") as f:
        known = os.path.join(o.folder, "answers", hashlib.sha1(f.read()).hexdigest()[:16])
    os.makedirs(known, exist_ok=True)

    groups = {}
    for name in sorted(cases):
        groups.setdefault(os.path.dirname(name), []).append(name)
    chosen = [n for names in groups.values() for i, n in enumerate(names) if fnmatch.fnmatch(n, o.cases)
              and (o.all or o.cases != "*" or i % 8 == 0)]

    def one(name):
        at = os.path.join(known, name.replace("/", "__") + ".json")
        if os.path.exists(at):
            old = json.load(open(at, encoding="utf-8"))
        else:
            old = answers(o.old, cases[name])
            with open(at, "w", encoding="utf-8") as f:
                json.dump(old, f)
        new = answers(o.new, cases[name])
        return (name, first_difference(comparable(old, o.words, names, o.but),
                                       comparable(new, o.words, names and {}, o.but)),
                len((as_json(old.get("explain.json", [0, ""])[1]) or {}).get("explanations", [])))

    since, odd, explained = time.time(), 0, 0
    with ThreadPoolExecutor(o.jobs) as pool:
        for name, why, n in pool.map(one, chosen):
            explained += n
            if why:
                odd += 1
                print(f"{name}: {why}", flush=True)
    print(f"{len(chosen)} of {len(cases)} cases, {explained} explanations, {time.time() - since:.0f} s: {odd} differ")
    return 1 if odd else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--harvest"]:
        harvested(sys.argv[2:])
    sys.exit(main())
