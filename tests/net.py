#!/usr/bin/env python3
"""net.py OLD NEW --folder FOLDER [--pairs GLOB] [--all] [--words] [--renamed FILE] [--jobs N]: do two builds give the
same answers?

Both programs explain and compare the same pairs of recordings. Their JSON, their text and their exit statuses are to be
equal, byte for byte. --words leaves the display sentences of explanations out, and the text: numbers, ids, findings and
statuses remain. --renamed: fields that NEW names otherwise, as a JSON object such as {"checkpoints.limits.used":
"limit_fraction"}; the version of the schema may differ, too, and nothing else.

The pairs are made once, by OLD, in FOLDER:
  catalogue/FAMILY/FAULT   each fault of the catalogue, in each family that it fits: in f32, f16 or bf16, at once or in
                           steps, all checkpoints recorded or the projections alone or the layers' outputs alone
  correct/FAMILY/FORMAT    no fault
  SCRIPT/NUMBER            what tests/SCRIPT hands to `explain` and `compare --model`: dumps of another engine, ranks,
                           edited files
What OLD answers is kept there, too: a second run of the same OLD runs NEW alone. Default: every eighth pair of each
group. Exit status 0: the same; 1: not.
"""
import argparse
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

TESTS = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(os.path.dirname(TESTS), "fixtures")
FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen3_5_text")
POINTS = ("*", "*", "{embed,*_proj,*_norm,*attn_context,*attn_out,*attn_residual,*mlp_act,*.output,logits}",
          "{embed,layer*.output,logits}")
SCRIPTS = ("parity_explain_unrelated.py", "parity_foreign.py", "cli/explain.sh", "cli/explain_vocabulary.sh",
           "cli/steps.sh", "cli/calls.sh", "cli/align.sh")
SENTENCES = {"words", "details", "against", "contradicted_by", "separate", "separating_input", "looks",
             "error_shape"}  # of explanations, in this version's names and in those of older ones


def run(*args, **more):
    return subprocess.run(args, capture_output=True, text=True, **more)


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
    """One pair for each fault that fits; a fault that cannot be made in that format is left out."""
    model, pairs, places = os.path.join(FIXTURES, family + "-trained"), {}, {}
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
                pairs[name] = [ref, out, "--model", model, "--allow", "missing"]
    return pairs


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


def harvested(args):
    """Acts as the program for a script: keeps the files of a comparison, then runs the program."""
    store, program = os.environ["NET_STORE"], os.environ["NET_PROGRAM"]
    if len(args) > 2 and (args[0] == "explain" or args[0] == "compare" and "--model" in args):
        kept, skip = [], False
        for a in args[1:]:
            if skip or a in ("--format", "--threads", "-o", "--output", "--explain", "--replay", "--full"):
                skip = not skip and a not in ("--explain", "--replay", "--full")
                continue
            kept.append(keep(store, a) if os.path.exists(a) and not os.path.abspath(a).startswith(FIXTURES)
                        else os.path.abspath(a) if os.path.exists(a) else a)
        line = json.dumps(kept)
        with open(os.path.join(store, "pairs"), "a", encoding="utf-8") as f:
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
    path = os.path.join(store, "pairs")
    lines = sorted(set(open(path, encoding="utf-8").read().splitlines())) if os.path.exists(path) else []
    return {f"{script}/{i:04}": json.loads(line) for i, line in enumerate(lines)}


def record(program, folder, jobs):
    os.makedirs(folder, exist_ok=True)
    pairs = {}
    with ThreadPoolExecutor(jobs) as pool:
        for some in pool.map(lambda f: catalogue(program, folder, f), FAMILIES):
            pairs.update(some)
    for script in SCRIPTS:
        pairs.update(of_script(program, folder, script))
    with open(os.path.join(folder, "pairs.json"), "w", encoding="utf-8") as f:
        json.dump(pairs, f, indent=0)
    return pairs


# ---- comparing -----------------------------------------------------------------------------------


def answers(program, args):
    """What the program says of a pair, in each form, with its status."""
    forms = (("explain", ["--format", "json"]), ("compare", ["--format", "json"]), ("explain", []))
    said = {}
    for command, more in forms:
        done = run(program, command, *args, "--threads", "1", *more)
        # The folder of limits is that of the source tree, or of the installation,
        # that the program was built in.
        said[f"{command} {' '.join(more)}".strip()] = [done.returncode, *(re.sub(r"/[^\s\"]*/limits/", "limits/", text)
                                                                          for text in (done.stdout, done.stderr))]
    return said


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


def renamed(said, names):
    return {form: [status, json.dumps(with_names(json.loads(text), names), indent=1)
                   if form.endswith("json") and text else text, error] for form, (status, text, error) in said.items()}


def comparable(said, words, names):
    if names is not None:
        said = renamed(said, names)
    if not words:
        return said
    out = {}
    for form, (status, text, _) in said.items():
        out[form] = [status]
        if form.endswith("json") and text:
            report = json.loads(text)
            report["explanations"] = without_sentences(report.get("explanations", []))
            out[form].append(report)
    return out


def first_difference(a, b):
    for form in a:
        if a[form] == b[form]:
            continue
        x, y = (json.dumps(v, indent=1).splitlines() if not isinstance(v[1:2] and v[1], str)
                else [str(v[0]), *v[1].splitlines(), *v[2].splitlines()] for v in (a[form], b[form]))
        n = next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
        return f"{form}: line {n}:\n  - {' '.join(x[n:n + 1])}\n  + {' '.join(y[n:n + 1])}"
    return ""


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("old")
    args.add_argument("new")
    args.add_argument("--folder", required=True, help="where pairs and OLD's answers are kept")
    args.add_argument("--pairs", default="*", help="pairs of these names")
    args.add_argument("--all", action="store_true", help="every pair, not a sample")
    args.add_argument("--words", action="store_true", help="display sentences may differ")
    args.add_argument("--renamed", help="fields with other names in NEW")
    args.add_argument("--jobs", type=int, default=1)
    o = args.parse_args()
    names = json.load(open(o.renamed, encoding="utf-8")) if o.renamed else None
    path = os.path.join(o.folder, "pairs.json")
    pairs = (json.load(open(path, encoding="utf-8")) if os.path.exists(path)
             else record(o.old, os.path.abspath(o.folder), o.jobs))
    with open(o.old, "rb") as f:
        known = os.path.join(o.folder, "answers", hashlib.sha1(f.read()).hexdigest()[:16])
    os.makedirs(known, exist_ok=True)

    groups = {}
    for name in sorted(pairs):
        groups.setdefault(os.path.dirname(name), []).append(name)
    chosen = [n for names in groups.values() for i, n in enumerate(names) if fnmatch.fnmatch(n, o.pairs)
              and (o.all or o.pairs != "*" or i % 8 == 0)]

    def one(name):
        at = os.path.join(known, name.replace("/", "__") + ".json")
        if os.path.exists(at):
            old = json.load(open(at, encoding="utf-8"))
        else:
            old = answers(o.old, pairs[name])
            with open(at, "w", encoding="utf-8") as f:
                json.dump(old, f)
        new = answers(o.new, pairs[name])
        return (name, first_difference(comparable(old, o.words, names), comparable(new, o.words, names and {})),
                len(json.loads(old["explain --format json"][1] or "{}").get("explanations", [])))

    since, odd, explained = time.time(), 0, 0
    with ThreadPoolExecutor(o.jobs) as pool:
        for name, why, n in pool.map(one, chosen):
            explained += n
            if why:
                odd += 1
                print(f"{name}: {why}", flush=True)
    print(f"{len(chosen)} of {len(pairs)} pairs, {explained} explanations, {time.time() - since:.0f} s: {odd} differ")
    return 1 if odd else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--harvest"]:
        harvested(sys.argv[2:])
    sys.exit(main())
