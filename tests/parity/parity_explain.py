#!/usr/bin/env python3
"""parity_explain.py VERNIER [--all] [--gpu] [--family F] [--fault GLOB] [--sample N]: are known mistakes called by
their names?

Every fault of the catalogue is made, one at a time, at an operation of a middle layer, on 70 tokens, in one of the
families that it fits: on the reference in float32 and, where there is a device, every tenth on the GPU in float16
(--all: all in every family). `vernier explain` then has both recordings and the unmodified model. Counted are

  seen      the fault moves its tensor beyond the floor (explain rightly says nothing of the others)
  origin    the operation at fault is the first origin, and there is no other
  first     the right id is first, or an alias of it: of the same numbers, as far as these tensors tell
  named     the right id is among those that cannot be told apart
  wrong     a wrong id alone, with a margin above 2
  twice     one id, and the same words, stand twice among the answers of a checkpoint

and printed is the table of what was taken for what. Exit status 1 when a number of specs/evidence.md is missed:
origin in 98 %, first in 95 %, no wrong id. 77: skipped.
"""
import argparse
import fnmatch
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures")
FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen3_5_text")
IDS = "@" + os.path.join(FIXTURES, "prompts", "p070.ids")
NOT_FOUND = "M6", "P8.prompt", "P12.", "P13"  # faults of the recorder that explain does not find (specs/explain.md)


class Bench:
    def __init__(self, vernier, folder, steps):
        self.vernier, self.folder = os.path.abspath(vernier), folder
        ids = open(IDS[1:], encoding="ascii").read().strip().split(",")
        self.steps = ["--ids", ",".join(ids[:58]), "--force-ids", ",".join(ids[58:])]
        self.prompt = self.steps if steps else ["--ids", IDS]

    def run(self, *args):
        return subprocess.run([self.vernier, *args], capture_output=True, text=True)

    def capture(self, name, engine, model, *more, prompt=None):
        out = os.path.join(self.folder, name)
        done = self.run("capture", engine, model, *(prompt or self.prompt), "--points", "*", "--threads", "1",
                        "--force", "-o", out, *more)
        return out if done.returncode == 0 else done.stderr.strip()

    def explain(self, ref, cand, model):
        done = self.run("explain", ref, cand, "--model", model, "--format", "json", "--threads", "1")
        if done.returncode == 2:
            raise RuntimeError(done.stderr.strip())
        return json.loads(done.stdout)


def places(bench, model):
    """For each fault, a checkpoint where it can be made: in a middle layer if possible."""
    found = {}
    for line in bench.run("points", "--faults=*", model).stdout.splitlines():
        fault, name = line.split()
        if not fault.startswith(NOT_FOUND):
            found.setdefault(fault, []).append(name)
    layers = 1 + max(int(n[5:].split(".")[0]) for ns in found.values() for n in ns if n.startswith("layer"))
    chosen = {}
    for fault, names in found.items():
        middle = [n for n in names if n.startswith(f"layer{layers // 2}.")] or names
        chosen[fault] = random.Random(fault).choice(middle)
    return chosen


def judge(fault, name, report):
    """(seen, origin, first, named, wrong, what it was called)."""
    made = {c["name"]: c for c in report["checkpoints"]}
    answers = [(e["checkpoint"], e) for e in report.get("explanations", [])]
    origins = report["origins"]
    if not origins:
        return dict(seen=False, called="silence", origin=False, first=False, named=False, wrong=False, twice=False)
    # a fault of attention shows in the first thing that is recorded of it
    op = made[name]["op"]
    plain = lambda o: o.split("/")[-1]  # in any step
    mine = [o for o in origins
            if plain(o) == name or (made[plain(o)]["layer"] == made[name]["layer"] and made[plain(o)]["op"] == op
                                    and op in ("attention", "delta_rule"))]
    told = [[a["id"] for a in dict(answers)[o]["answers"]] if o in dict(answers) else [] for o in mine]
    ids = next((i for i in told if fault not in i), told[0] if told else [])  # every step is to be explained
    # an operation that the fault changes too is an origin as well, by the same name
    right = bool(mine) and all(o in mine or fault in [a["id"] for a in dict(answers)[o]["answers"]] for o in origins
                               if o in dict(answers))
    alone = [(x["answers"][0]["id"], x) for _, x in answers if x["explained"] and x["answers"][0]["id"]]
    wrong = any(fault not in [a["id"] for a in x["answers"]] and (x["margin"] is None or x["margin"] > 2) for i,
                x in alone)
    words = [[(a["id"], a["words"]) for a in x["answers"]] for _, x in answers]
    return dict(seen=True, twice=any(len(set(w)) < len(w) for w in words), origin=right,
                first=bool(ids) and fault in ids, named=fault in ids, wrong=wrong,
                called=" ".join(ids) if ids else "nothing" if mine else "elsewhere: " + " ".join(origins[:3]))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("vernier")
    args.add_argument("--all", action="store_true")
    args.add_argument("--gpu", action="store_true", help="the GPU alone")
    args.add_argument("--ref", action="store_true", help="the reference alone")
    args.add_argument("--steps", action="store_true", help="58 tokens at once, then 12 steps of one")
    args.add_argument("--family")
    args.add_argument("--fault", default="*")
    args.add_argument("--sample", type=int, default=1, metavar="N", help="every Nth fault, for a short run")
    args.add_argument("--verbose", action="store_true")
    o = args.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        bench = Bench(o.vernier, folder, o.steps)
        device = bench.run("devices").returncode == 0
        engines = ([] if o.gpu else [("ref", "f32")]) + ([] if o.ref or not device else [("gpu", "f16")])
        for engine, precision in engines:
            found = {}
            for family in FAMILIES:
                model = os.path.join(FIXTURES, family + "-trained")
                if o.family and family != o.family:
                    continue
                ref = bench.capture(f"{family}.ref.h5", "ref", model)
                for fault, name in places(bench, model).items():
                    if fnmatch.fnmatch(fault, o.fault):
                        found.setdefault(fault, []).append((family, model, ref, fault, name))
            jobs = []
            for n, cases in enumerate(list(found.values())[::o.sample]): # the next fault uses another family
                some = {n % len(cases)} if engine == "ref" or n % 10 == 0 else set()
                jobs += [c for i, c in enumerate(cases) if o.all or i in some]

            def one(job):
                family, model, ref, fault, name = job
                out = f"{family}.{engine}.{fault}.h5"
                cand = bench.capture(out, engine, model, "--precision", precision, "--inject", f"{fault}@{name}")
                if not os.path.exists(cand):
                    return job, None, cand
                try:
                    found = judge(fault, name, bench.explain(ref, cand, model))
                    if not found["seen"] and not o.steps:  # some show in decoding alone
                        cand = bench.capture(out, engine, model, "--precision", precision, "--inject",
                                             f"{fault}@{name}", prompt=bench.steps)
                        ref = bench.capture(f"{out}.ref", "ref", model, prompt=bench.steps)
                        found = judge(fault, name, bench.explain(ref, cand, model))
                        os.unlink(ref)
                    return job, found, ""
                except RuntimeError as why:
                    return job, None, str(why)
                finally:
                    os.unlink(cand)

            total, rows, silent = {}, {}, []
            for (family, _, _, fault, name), j, why in pool.map(one, jobs):
                if j is None:
                    if not any(s in why for s in ("leaves the weights there unchanged", "not f16 or bf16",
                                                  "for other block formats", "no barrier to omit",
                                                  "the reference engine has no barriers")):
                        print(f"{family}: {fault}@{name}: {why}")
                        failed = True
                    continue
                if not j["seen"]:
                    silent.append((fault, family))
                    continue
                for k in ("seen", "origin", "first", "named", "wrong", "twice"):
                    total[k] = total.get(k, 0) + j[k]
                rows.setdefault(fault, []).append((family, name, j))
            print(f"== {engine} {precision}: what each fault was called")
            for fault, cases in sorted(rows.items()):
                odd = [f"{f} {n}: {j['called']}" + (" WRONG" if j["wrong"] else "") for f, n, j in cases
                       if not (j["origin"] and j["first"]) or j["wrong"] or j["called"] != fault]
                n = sum(j["first"] and j["origin"] for _, _, j in cases)
                if o.verbose or odd:
                    print(f"{fault:14} {n} of {len(cases)}  {'; '.join(odd)}")
            print(f"within the floor, and passed over: {len(silent)} ({' '.join(sorted(set(f for f, _ in silent)))})")
            seen = total.get("seen", 0)
            if not seen:
                continue
            share = {k: 100 * total[k] / seen for k in total}
            print(f"{engine} {precision}: {seen} faults seen; origin right in {share['origin']:.1f} %, "
                  f"first in {share['first']:.1f} %, wrong {total['wrong']}, twice {total['twice']}")
            failed = failed or share["origin"] < 98 or share["first"] < 95 or total["wrong"] + total["twice"] > 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
