#!/usr/bin/env python3
"""parity_outside.py: mistakes made in transformers from outside (outside_*.py), recorded, and explained.

    parity_outside.py VERNIER [--dtype f32|f16|bf16]... [--fault GLOB]... [--family F]...
                      [--sample N [--part K]] [--random] [--verbose]

Needs a Python with torch and transformers (77, skipped, without). Each mistake is made in each of its families and
formats, with 70 tokens at once, as a prompt and single tokens, as calls of other lengths, as a row of a batch that is
padded left, or as the second of three prompts packed into one row; `vernier explain` is given the recording. Of a
mistake in 16 bits that leaves less than a correct operation may, nothing is expected (below). Prints

    found    a run that is outside its limits
    origin   the first origin is where the mistake was made
    named    by the right id; none: no name was given; half: a name that is one half of the right pair
    wrong    another name

and of the runs in which the mistake leaves one of its operations at 4 floors or more, how many were found: all are
asked for in float32, 97 % in 16 bits (of few numbers, as in a single token, a correct operation may have 16). Exit
status 1 where that is not so, where a wrong name was given, a mistake was not found or not where it is, one that is
SURE has no name, or (of 100 or more that were found) fewer than 85 % were named, without those that no catalogue has
(UNKNOWN). --sample N: every Nth row, for a short run; with --part K, those that leave K of N: all of them in N
processes. --random: in models with random weights and other shapes than the trained ones.
"""
import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from needs_transformers import torch, transformers

import outside_attention  # these six add to FAULTS, in this order
import outside_model
import outside_alike
import outside_calls
import outside_caches
import outside_ports
import outside_states
import random_model
from outside_faults import FAULTS, PLAIN, SURE, UNKNOWN, WHOLE, Model
from parity_variants import full_name, used
from record_help import BF16, F16, F32, FAMILIES, model_of, prompt, record
from vernier_parity.watch import Watch

DTYPES = {"f32": F32, "f16": F16, "bf16": BF16}
STEPS = 8
PACKED = 33  # tokens of the prompt between two others
FLOORS = 4.0  # an operation so far off is to be found
SHARE = {"f32": 1.0, "f16": 0.97, "bf16": 0.97}


SHAPES = {  # of --random
    "gpt2": "--hidden 40 --heads 5 --layers 3",
    "llama": "--hidden 64 --heads 8 --kv-heads 2 --ffn 96 --layers 3 --untied --theta 500000",
    "mistral": "--hidden 60 --heads 6 --kv-heads 3 --head-dim 16 --window 17 --layers 3 --untied",
    "qwen2": "--hidden 56 --heads 4 --kv-heads 1 --head-dim 32 --window 19 --full-layers 3 --layers 3",
    "qwen3": "--hidden 48 --heads 6 --kv-heads 2 --head-dim 24 --layers 3 --untied",
    "qwen3_5_text": "--hidden 64 --layers 4 --heads 4 --kv-heads 2 --head-dim 16 --linear 2,6,8,12",
}


def random_of(family, folder):
    path = os.path.join(folder, family)
    if not os.path.exists(path):
        random_model.main([family, "-o", path, *SHAPES[family].split(), "--seed", "7"])
    return path


def cuts(how, n):
    """How many tokens each call has."""
    return {"whole": [n], "chunks": [35, n - 35], "uneven": [20, 30, n - 50], "same calls": [20, 30, n - 50],
            "steps": [n - STEPS] + [1] * STEPS,
            "chunks steps": [31, n - STEPS - 31] + [1] * STEPS}[how]


def own(how, ids):
    """The tokens of the prompt that is compared."""
    return ids[:50] if how.startswith("padded") else ids[:PACKED] if how == "packed" else ids


def call(model, how, ids):
    """The forward passes of a recording."""
    with torch.no_grad():
        if how == "packed":
            prompts = [ids[40:65], own(how, ids), ids[10:20]]
            of = torch.tensor([i for i, p in enumerate(prompts) for _ in p])
            seen = (of[:, None] == of) & torch.ones(len(of), len(of), dtype=torch.bool).tril()
            mask = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(model.dtype).min).to(model.dtype)
            more = {} if hasattr(model.config, "linear_num_key_heads") else {"attention_mask": mask[None, None]}
            model(torch.tensor([sum(prompts, [])]), use_cache=False, **more,
                  position_ids=torch.tensor([[i for p in prompts for i in range(len(p))]]))
            return
        if how.startswith("padded"):
            rows = [ids, ids[:50]]
            mask = torch.tensor([[0] * (len(ids) - len(r)) + [1] * len(r) for r in rows])
            positions = (mask.cumsum(-1) - 1).clamp(min=0)
            padded, cache, at = torch.tensor([[0] * (len(ids) - len(r)) + r for r in rows]), None, 0
            for n in [len(ids)] if how == "padded" else [len(ids) - STEPS] + [1] * STEPS:
                cache = model(padded[:, at : at + n], attention_mask=mask[:, : at + n],
                              position_ids=positions[:, at : at + n], past_key_values=cache,
                              use_cache=True).past_key_values
                at += n
            return
        cache, at = None, 0
        for n in cuts(how, len(ids)):
            cache = model(torch.tensor([ids[at : at + n]]), past_key_values=cache, use_cache=True).past_key_values
            at += n


def reference(vernier, directory, how, ids, path):
    if how == "same calls":
        model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=F32,
                                                                  attn_implementation="eager").eval()
        with record(model, path, points="*"):
            call(model, how, ids)
        return
    ids = own(how, ids)
    cut = len(ids) - (STEPS if how.endswith("steps") else 0)
    more = ["--force-ids", ",".join(map(str, ids[cut:]))] if how.endswith("steps") else []
    done = subprocess.run([vernier, "capture", "ref", directory, "--ids", ",".join(map(str, ids[:cut])), *more,
                           "--points", "*", "--threads", "1",
                           "--force", "-o", path], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)


def matches(name, globs):
    return any(fnmatch.fnmatchcase(name, g) for g in globs)


def judged(f, m, report):
    """(found, origin, named, what was said) as words, and whether an operation of the mistake is off by FLOORS."""
    p = {"p": m.p, "d": f"layer{m.delta_at}."}
    where = [o.format(**p) for o in f.origin]
    if f.call not in ("whole", "padded", "packed"):
        where += ["*" + o for o in where]
    at = [c for c in report["checkpoints"] if "replay" in c and matches(full_name(c), where)]
    found = report["verdict"] != "within"
    origins = report["origins"] or []
    far = any((c["replay"]["local_over_floor"] or 0.0) >= FLOORS or c["replay"]["nonfinite"] for c in at)
    if not found and all(used(c) <= 1 for c in at):
        return "below", "-", "-", "", far
    first = origins[0] if origins else ""
    told = [(e["checkpoint"], [a["id"] for a in e["answers"]], e["words"]) for e in report.get("explanations", [])
            if e["explained"]]
    ids = f.ids or [""]
    wrong = [t for t in told if not any(matches(i, ids) or i == "" for i in t[1])]
    halves = [t for t in wrong if any("+" in i and any(matches(part, i.split("+")) for part in t[1]) for i in f.ids)]
    right = [t for t in told if t not in wrong]
    named = "half" if halves and len(halves) == len(wrong) else "WRONG" if wrong else "named" if right else "none"
    if named == "named" and f.name in WHOLE and len(right) < len(report["explanations"]):
        named = "none"
    words = "; ".join(f"{t[0]}: {t[2]}" for t in (wrong or right)[:2])
    if named == "none":
        words = "; ".join(e["words"] for e in report.get("explanations", [])[:1])
    return ("found" if found else "MISSED", "origin" if matches(first, where) else f"ELSEWHERE {first}", named, words,
            far)


def explained(vernier, job):
    f, m, dtype, ref, cand, directory = job
    more = ["--batch-row", "1"] if f.call.startswith("pa") else []
    done = subprocess.run([vernier, "explain", ref, cand, "--model", directory, "--allow", "missing,extra", "--threads",
                           "1", "--format", "json", *more],
                          capture_output=True, text=True, check=False)
    os.unlink(cand)
    if done.returncode > 1:
        return f, m, dtype, ("REFUSED", "-", "-", done.stderr.strip(), False)
    return f, m, dtype, judged(f, m, json.loads(done.stdout))


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("vernier")
    a.add_argument("--dtype", action="append", choices=DTYPES)
    a.add_argument("--family", action="append", choices=FAMILIES)
    a.add_argument("--fault", action="append", metavar="GLOB")
    a.add_argument("--sample", type=int, default=1, metavar="N")
    a.add_argument("--part", type=int, default=0, metavar="K")
    a.add_argument("--random", action="store_true")
    a.add_argument("--verbose", action="store_true")
    a = a.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    vernier, bad, n = os.path.abspath(a.vernier), 0, 0
    ids = prompt("p070")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        refs = {}
        for dtype in a.dtype or DTYPES:
            jobs, counts, n_far, far_found, no_name = [], {}, 0, 0, 0
            for family in a.family or (SHAPES if a.random else FAMILIES):
                directory = random_of(family, folder) if a.random else model_of(family)
                m = Model(transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=DTYPES[dtype],
                                                                            attn_implementation="eager").eval(), family)
                for f in FAULTS:
                    if family not in f.families or (a.fault and not matches(f.name, a.fault)):
                        continue
                    n += 1
                    if n % a.sample != a.part:
                        continue
                    if (family, f.call) not in refs:
                        refs[family, f.call] = os.path.join(folder, f"{family}.{f.call}.ref.h5")
                        reference(vernier, directory, f.call, ids, refs[family, f.call])
                    cand = os.path.join(folder, f"{family}.{dtype}.{f.name}.h5")
                    mistake = Watch(cand)
                    with mistake.undo:
                        for where, name, value in f.make(m):
                            mistake.function(where, name, lambda _, value=value: value)
                        with record(m.model, cand, **({} if f.name in PLAIN else {"points": "*"})):
                            call(m.model, f.call, ids)
                    jobs.append(pool.submit(explained, vernier, (f, m, dtype, refs[family, f.call], cand, directory)))
            for j in jobs:
                f, m, dtype, (found, origin, named, words, far) = j.result()
                n_far += far
                far_found += far and found == "found"
                no_name += found == "found" and named == "none" and f.name in UNKNOWN
                if far and found == "below":
                    print(f"{m.family:12} {dtype:4} {f.name:28} is at {FLOORS:g} floors or more, and within",
                          flush=True)
                for word in (found, origin.split()[0], named):
                    counts[word] = counts.get(word, 0) + 1
                unnamed = f.name in SURE and named == "none"
                bad += unnamed
                if a.verbose or unnamed or found in ("MISSED", "REFUSED") or origin.startswith("E") or named == "WRONG":
                    print(f"{m.family:12} {dtype:4} {f.name:28} {found:6} {origin:7} {named:5} {words[:300]}",
                          flush=True)
            c = lambda word: counts.get(word, 0)
            seen = c("found") + c("MISSED")
            print(f"{dtype}: {len(jobs)} runs, {c('below')} below the floor; of {seen} others {c('found')} found, "
                  f"{c('origin')} first origins right, "
                  f"{c('named')} named, {c('half')} by half, {c('none')} none ({no_name} of these are of no known "
                  f"kind), {c('WRONG')} wrong names, {c('REFUSED')} refused", flush=True)
            print(f"{dtype}: {n_far} leave an operation at {FLOORS:g} floors or more, {far_found} of these are found "
                  f"({100 * far_found / max(n_far, 1):.1f} %; {100 * SHARE[dtype]:g} % are asked for)", flush=True)
            bad += far_found < SHARE[dtype] * n_far
            few = c("found") >= 100 and c("named") < 0.85 * (c("found") - no_name)
            if few:
                print("fewer than 85 % are named")
            bad += few
            bad += c("WRONG") + c("MISSED") + c("ELSEWHERE") + c("REFUSED")
    print(f"{len({f.name for f in FAULTS})} mistakes; " + ("1 passed, 0 failed" if not bad else "0 passed, 1 failed"))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
