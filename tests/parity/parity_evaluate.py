#!/usr/bin/env python3
"""parity_evaluate.py: `vernier evaluate` against HuggingFace's perplexities, and against numpy on recorded logits.

    parity_evaluate.py VERNIER

  perplexity   of the reference: transformers' strided evaluation of the same ids (golden/*-trained.text.json) to 1e-5
  the rest     losses, gap, standard errors, intervals, argmax, KL, echo, greedy decoding: numpy in float64 on the
               logits that `vernier capture` records window by window, to 1e-9 (KL to 1e-9 absolute)

The candidate is the reference in float16, and the GPU on every suitable device.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from parity_decode import MODEL, capture, ids_of, listed, model_of, prompt
from parity_gpu import devices
from parity_hf import FIXTURES

Z95 = 1.959963984540054


def evaluate(vernier, ids, window, stride, *more, model=MODEL):
    run = subprocess.run([vernier, "evaluate", model, "--ids", listed(ids), "--window", str(window), "--stride",
                          str(stride),
                          "--format", "json", *more], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def golden(vernier, family):
    with open(os.path.join(FIXTURES, "golden", family + "-trained.text.json")) as f:
        g = json.load(f)
    said = {x["prompt"]: x["ids"] for x in g["greedy"]}
    worst = (0.0, "-")
    for p in g["perplexity"]:
        ids = prompt(p["ids"]) + (said[p["ids"]] if p.get("greedy") else [])
        j = evaluate(vernier, ids, p["window"], p["stride"], "--candidate", "ref", "--precision", "f32", "--decode",
                     "0",
                     model=model_of(family))
        if j["scored"] != p["scored"]:
            print(f"{p['ids']}: {j['scored']} tokens scored, transformers {p['scored']}   FAILED")
            return False
        label = f"{p['ids']} {p['window']}/{p['stride']}"
        worst = max(worst, (abs(j["reference"]["perplexity"] / p["perplexity"] - 1), label))
    good = worst[0] <= 1e-5
    print(f"{family}: perplexity: {len(g['perplexity'])} texts, at most {worst[0]:.1e} from transformers ({worst[1]}), "
          f"1e-05 allowed"
          f"{'' if good else '   FAILED'}")
    return good


def windows(n, window, stride):
    """begin, end and the first token that is scored, of each."""
    found, done = [], 0
    for begin in range(0, n, stride):
        end = min(begin + window, n)
        found.append((begin, end, max(done, begin + 1)))
        done = end
        if end == n:
            return found


def logits(vernier, engine, ids, d):
    with h5py.File(capture(vernier, engine, ids, os.path.join(d, "l"), "--points", "logits"), "r") as f:
        return f["step.0/logits"][()].astype(np.float64)


def log_softmax(x):
    top = x.max(axis=-1, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(axis=-1, keepdims=True))


def mean_error(x):
    return x.mean(), x.std(ddof=1) / math.sqrt(len(x))


def truth(vernier, candidate, ids, window, stride, d):
    loss, kl, best, at, top5 = [[], []], [], [[], []], [], []
    for begin, end, first in windows(len(ids), window, stride):
        rows = [logits(vernier, e, ids[begin:end], d)[first - 1 - begin:end - 1 - begin] for e in (["ref"], candidate)]
        p = [log_softmax(r) for r in rows]
        target = np.array(ids[first:end])
        for s in range(2):
            loss[s] += (-p[s][np.arange(len(target)), target]).tolist()
            best[s] += rows[s].argmax(axis=-1).tolist()
        kl += (np.exp(p[0]) * (p[0] - p[1])).sum(axis=-1).tolist()
        at += range(first, end)
        five = [np.sort(np.argsort(-r, axis=-1, kind="stable")[:, :5]) for r in rows]
        top5 += [len(set(a) & set(b)) / 5 for a, b in zip(*five)]
    loss, kl, best, at = np.array(loss), np.array(kl), np.array(best), np.array(at)
    went_in, target = np.array(ids)[at - 1], np.array(ids)[at]
    apart = np.nonzero(best[0] != best[1])[0]
    said = {}
    for s, name in enumerate(("reference", "candidate")):
        m, e = mean_error(loss[s])
        said |= {f"{name}.perplexity": math.exp(m), f"{name}.loss": m, f"{name}.loss_error": e,
                 f"{name}.interval.0": math.exp(m - Z95 * e), f"{name}.interval.1": math.exp(m + Z95 * e),
                 f"{name}.echo": (best[s] == went_in).mean(), f"{name}.nonfinite": 0, f"{name}.echoes": False}
    m, e = mean_error(loss[1] - loss[0])
    said |= {"gap.loss": m, "gap.loss_error": e, "gap.perplexity_ratio": math.exp(m),
             "gap.interval.0": math.exp(m - Z95 * e),
             "gap.interval.1": math.exp(m + Z95 * e)}
    m, e = mean_error(kl)
    said |= {"kl.mean": m, "kl.error": e, "kl.max": kl.max(), "kl.max_at": at[kl.argmax()],
             "kl.p99": np.sort(kl)[max(math.ceil(0.99 * len(kl)), 1) - 1]}
    said |= {"argmax.top5": np.mean(top5), "argmax.strict": (best[0] == best[1]).mean(),
             "repeats": (went_in == target).mean(), "scored": len(at), "tokens": len(ids)}
    if len(apart):
        said |= {"argmax.first_difference.at": at[apart[0]], "argmax.first_difference.reference": best[0][apart[0]],
                 "argmax.first_difference.candidate": best[1][apart[0]]}
    else:
        said["argmax.first_difference"] = None
    return said


def greedy(vernier, candidate, ids, window, d):
    n = 40
    own = [ids_of(capture(vernier, e, ids[:window // 2], os.path.join(d, "g"), "--decode", str(n), "--points", "logits",
                          "--tokens", "last"))[window // 2:] for e in (["ref"], candidate)]
    for i in range(n):
        if own[0][i] != own[1][i]:
            return {"greedy.first_difference.at": i + 1, "greedy.first_difference.reference": own[0][i],
                    "greedy.first_difference.candidate": own[1][i], "greedy.steps": i + 1}
    return {"greedy.first_difference": None, "greedy.steps": n, "greedy.prompt": window // 2}


def recorded(vernier, candidate, ids, window, stride, d):
    """The same from recorded logits: the reference read each window in one call, the candidate half of it token by
    token."""
    for k, (begin, end, _) in enumerate(windows(len(ids), window, stride)):
        half = begin + max(1, (end - begin) // 2)
        for side, engine, first, more in (("ref", ["ref"], end, []),
                                          ("cand", candidate, half, ["--force-ids", listed(ids[half:end])])):
            os.makedirs(os.path.join(d, side), exist_ok=True)
            capture(vernier, engine, ids[begin:first], os.path.join(d, side, f"w{k}.h5"), "--points", "logits",
                    *(more if first < end else []))
    run = subprocess.run([vernier, "evaluate", "--recordings", os.path.join(d, "ref"), os.path.join(d, "cand"),
                          "--stride", str(stride),
                          "--format", "json"], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def look(j, path):
    for key in path.split("."):
        j = j[int(key)] if isinstance(j, list) else j[key]
    return j


def differences(j, expected, label):
    """How many of the expected numbers j has otherwise, and the largest distance."""
    wrong, worst = 0, 0.0
    for key, value in expected.items():
        have = look(j, key)
        if value is None or isinstance(value, (bool, int, np.integer)):
            same = have == value
        else:
            apart = abs(have - value) / max(abs(value), 1.0 if key.startswith(("kl", "gap.loss")) else 1e-300)
            worst = max(worst, apart)
            same = apart <= 1e-9
        if not same:
            wrong += 1
            print(f"{label}: {key}: {have}, numpy says {value}   FAILED")
    return wrong, worst


def check(vernier, candidate, more, label):
    wrong, n, worst = 0, 0, 0.0
    for name, window, stride in (("p200", 64, 32), ("text", 128, 100), ("p070", 30, 30)):
        ids = prompt(name)[:430]
        j = evaluate(vernier, ids, window, stride, "--decode", "40", *more)
        with tempfile.TemporaryDirectory() as d:
            of_text = truth(vernier, candidate, ids, window, stride, d)
            found = [(j, of_text | greedy(vernier, candidate, ids, window, d), f"{label}: {name}")]
            if candidate[0] == "ref":  # read token by token, a GPU's logits have other roundings than in one call
                found.append((recorded(vernier, candidate, ids, window, stride, d), of_text,
                              f"{label}: {name}, recorded"))
        for got, expected, what in found:
            bad, apart = differences(got, expected, what)
            wrong, worst, n = wrong + bad, max(worst, apart), n + len(expected)
    print(f"{label}: {n} numbers as numpy says, at most {worst:.1e} apart: {wrong == 0}")
    return wrong == 0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    vernier = sys.argv[1]
    good = golden(vernier, "qwen2") & golden(vernier, "qwen3_5_text")
    good &= check(vernier, ["ref", "--precision", "f16"], ["--candidate", "ref"], "ref f16")
    for index, name, _ in devices(vernier):
        good &= check(vernier, ["gpu", "--device", index], ["--device", index], f"gpu f16 on {name}")
    print("1 passed, 0 failed" if good else "0 passed, 1 failed")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
