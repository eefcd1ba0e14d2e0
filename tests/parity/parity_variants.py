#!/usr/bin/env python3
"""parity_variants.py: does anybody accuse transformers, which is correct?

    parity_variants.py VERNIER [--dtype f32|f16|bf16|f64]... [--family F]... [--prompt NAME]... [--way NAME]...
    [--random N] [--all] [--sample N] [--verbose]

Needs a Python with torch, transformers and what else fixtures/requirements.txt names (77, skipped, without). Runs the
trained models through transformers in float32, float16, bfloat16 and float64, on prompts of the kinds that float
differently: text, tokens at random, a phrase again and again, one token again and again, three tokens, one. `vernier
explain` then replays each against the reference. Whatever it calls an origin is a false accusation, and fails; so does
a run that it calls outside. With --random N, so do N models with random weights of every family, deeper than the
trained ones. With --way the prompts are left out, and vernier_parity.record() records transformers in the ways of
reference_variants.py (eager, sdpa, flex, chunks, padded batches, static caches, generate, autocast, threads), each on
trained and on random weights. --all: every prompt and every way, more than 850 recordings in 5 minutes. --sample N:
every Nth recording, for a short run. Prints for
every format how many runs, checkpoints and origins there were, how many runs were within by operation alone (their
accumulated error is beyond a limit), and which operation came nearest to its limit.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from needs_transformers import golden, torch, transformers  # first: it finds what is in fixtures/
import random_model
from reference_variants import WAYS, watched
from record_help import record as recorder
from parity_hf import FAMILIES, FIXTURES

DTYPES = ("f32", "f16", "bf16", "f64")
# floors that a tensor's nmse may be off; its worst token's, and the square of its worst element's
WHOLE, PEAK = 4.0, 16.0


def prompts():
    dice = random.Random(11)
    draw = lambda n: [dice.randrange(512) for _ in range(n)]
    phrase = draw(7)
    found = {"text": golden.read_ids("@" + os.path.join(FIXTURES, "prompts", "p070.ids")), "random130": draw(130),
             "random200": draw(200),
             "phrase": (phrase * 20)[:130], "pair": draw(2) * 40, "three": draw(3), "one": draw(1)}
    for n, length in enumerate((20, 70, 130, 200)):
        for token in draw(2):
            found[f"{length}x{token}"] = [token] * length
    return found


def used(c):
    """How much of what is allowed a replayed checkpoint uses (specs/compare.md)."""
    r = c["replay"]
    whole, token, peak = (r[k] or 0.0 for k in ("local_over_floor", "worst_token_over_floor", "max_abs_over_floor"))
    return max(whole / WHOLE, token / PEAK, peak**2 / PEAK) / (4 if r["independent_numbers"] < 128 else 1)


def reference(vernier, model, ids, more, path):
    numbers = lambda x: ",".join(map(str, x))
    forced = ["--force-ids", numbers(more)] if more else []
    run = subprocess.run([vernier, "capture", "ref", model, "--ids", numbers(ids), *forced, "--points", "*",
                          "--threads", "1", "-o", path],
                         capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stderr)


def full_name(c):
    """Of a checkpoint in a report, as its origins have it."""
    return f"step.{c['step']}/{c['name']}" if c["step"] else c["name"]


def explained(vernier, ref, cand, model, *more):
    run = subprocess.run([vernier, "explain", ref, cand, "--model", model, "--allow", "missing,extra", "--threads", "1",
                          "--format", "json", *more],
                         capture_output=True, text=True, check=False)
    if run.returncode > 1:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def record(model, run, family, dtype, ids, path):
    values = golden.capture(family, run, ids)
    golden.write(path, model, ids, dtype, values, run.config.num_hidden_layers, command="parity_variants.py",
                 provenance="trained",
                 points="*", prompt=None)


class Sample:
    def __init__(self, every):
        self.every, self.asked = every, 0

    def has_next(self):
        """Asked for each recording: is it in the sample?"""
        self.asked += 1
        return self.asked % self.every == 0


class Sum:
    def __init__(self):
        self.runs = self.checkpoints = self.origins = self.outside = self.by_operation = 0
        self.most, self.at = 0.0, "-"
        self.by_point = {}

    def add(self, where, report):
        replayed = [c for c in report["checkpoints"] if "replay" in c]
        called = {e["checkpoint"]: e["answers"][0]["id"] or "by its look" for e in report.get("explanations", [])
                  if e["explained"]}
        self.runs += 1
        self.checkpoints += len(replayed)
        self.origins += len(report["origins"])
        self.outside += report["verdict"] != "within"
        self.by_operation += any(c["status"] == "accumulated" for c in report["checkpoints"])
        if report["verdict"] != "within":
            print(f"OUTSIDE {where}: {report['summary']}", flush=True)
        for c in replayed:
            at, point, u = f"{where} {full_name(c)}", c["name"].split(".")[-1], used(c)
            self.by_point[point] = max(self.by_point.get(point, (0.0, "")), (u, at))
            if full_name(c) in report["origins"]:
                r = c["replay"]
                whole, token, most = (r[k] or 0.0
                                      for k in ("local_over_floor", "worst_token_over_floor", "max_abs_over_floor"))
                print(f"ACCUSED {at}: nmse {whole:.2f} floors, worst token {token:.2f}, largest {most ** 2:.2f}, "
                      f"called {called.get(full_name(c), 'nothing')}", flush=True)
            elif u > self.most:
                self.most, self.at = u, at


def random_models(count, layers, families, folder):
    """(name, directory) of count models of each family, with random weights."""
    for f in families:
        for seed in range(1, count + 1):
            model = os.path.join(folder, f"{f}-random{seed}")
            shape = ["--head-dim", "16"] if f == "qwen3_5_text" else []
            random_model.main([f, "-o", model, "--layers", str(layers), "--seed", str(seed), *shape])
            yield f"{f}-random{seed}", model


def in_prompts(vernier, folder, pool, models, dtype, names, sample, total):
    """Every prompt at once, recorded by fixtures/golden.py."""
    found = prompts()
    for f, model in models:
        run = golden.load(model, dtype)

        def one(name, f=f, model=model):
            ref, cand = (os.path.join(folder, f"{f}.{dtype}.{name}.{x}.h5") for x in ("ref", "hf"))
            reference(vernier, model, found[name], [], ref)
            report = explained(vernier, ref, cand, model)
            os.unlink(ref)
            os.unlink(cand)
            return name, report

        jobs = []
        for name in filter(lambda _: sample.has_next(), names):
            record(model, run, golden.family_of(model)[1], dtype, found[name],
                   os.path.join(folder, f"{f}.{dtype}.{name}.hf.h5"))
            jobs.append(pool.submit(one, name))
        for j in jobs:
            name, report = j.result()
            total.add(f"{f} {dtype} {name}", report)


def in_ways(vernier, folder, pool, models, dtype, names, sample, total):
    """Every way, recorded by vernier_parity."""
    for f, model in models:
        ids = prompts()["text"] if f.endswith("trained") else prompts()["random130"]
        runs, jobs = {}, []

        def one(where, row, prompt, more, cand, ref, model=model):
            reference(vernier, model, prompt, more, ref)
            report = explained(vernier, ref, cand, model, *([] if row is None else ["--batch-row", str(row)]))
            os.unlink(ref)
            os.unlink(cand)
            return where, report

        for name in names:
            w = WAYS[name]
            if dtype not in w.formats:
                continue
            if w.attention == "flex_attention" and f.startswith(("gpt2", "qwen3_5")):
                continue  # transformers has none for them
            if not sample.has_next():
                continue
            if w.attention not in runs:
                runs[w.attention] = transformers.AutoModelForCausalLM.from_pretrained(
                    model, dtype={"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
                                  "f64": torch.float64}[dtype], attn_implementation=w.attention).eval()
            cand = os.path.join(folder, f"{f}.{dtype}.{name}.h5")
            row, prompt, more = watched(runs[w.attention], w, ids, recorder, cand)
            jobs.append(pool.submit(one, f"{f} {dtype} {name}", row, prompt, more, cand,
                                    os.path.join(folder, f"{f}.{dtype}.{name}.ref.h5")))
        for j in jobs:
            total.add(*j.result())


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("vernier")
    a.add_argument("--dtype", action="append", choices=DTYPES)
    a.add_argument("--family", action="append", choices=FAMILIES)
    a.add_argument("--prompt", action="append", choices=prompts())
    a.add_argument("--way", action="append", choices=WAYS)
    a.add_argument("--random", type=int, default=0, metavar="N", help="of each family, in place of the trained models")
    a.add_argument("--all", action="store_true", help="every prompt, and every way on trained and on random weights")
    a.add_argument("--sample", type=int, default=1, metavar="N", help="every Nth recording")
    a.add_argument("--verbose", action="store_true", help="of every point, how near to the limit it came")
    a = a.parse_args()

    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    vernier, bad, runs, sample = os.path.abspath(a.vernier), 0, 0, Sample(a.sample)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        families = a.family or FAMILIES
        trained = [(f + "-trained", os.path.join(FIXTURES, f + "-trained")) for f in families]
        of_chance = list(random_models(a.random or (1 if a.way or a.all else 0), 8 if a.random else 4, families,
                                       folder))
        for dtype in a.dtype or DTYPES:
            total = Sum()
            if a.all or a.prompt or not a.way:
                in_prompts(vernier, folder, pool, of_chance if a.random else trained, dtype, a.prompt or prompts(),
                           sample, total)
            if a.all or a.way:
                in_ways(vernier, folder, pool, trained + of_chance, dtype, a.way or WAYS, sample, total)
            bad += total.origins + total.outside
            runs += total.runs
            if a.verbose:
                for point, (u, where) in sorted(total.by_point.items(), key=lambda kv: -kv[1][0]):
                    print(f"  {point:16} {u:.2f} of the limit ({where})")
            print(f"{dtype}: {total.runs} runs, {total.checkpoints} checkpoints, {total.origins} accused, "
                  f"{total.outside} outside, "
                  f"{total.by_operation} within by operation; of the others at most {total.most:.2f} of what is "
                  f"allowed ({total.at})", flush=True)
    if a.all and runs < 500 and not (a.dtype or a.family or a.prompt or a.way):
        print(f"{runs} runs, at least 500 are meant")
        bad += 1
    print("1 passed, 0 failed" if not bad else "0 passed, 1 failed")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
