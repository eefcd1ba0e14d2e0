"""any_judge.py: judges a replayed file by the rules of floors, with numpy alone: what `vernier compare --replayed` must
agree with. A verdict has the keys that `replay --again` reads."""

import json

import h5py
import numpy as np

EPS = {"f16": 2.0 ** -10, "bf16": 2.0 ** -7, "f32": 2.0 ** -23, "f64": 2.0 ** -52}
TINY = {"f16": 2.0 ** -14, "bf16": 2.0 ** -126, "f32": 2.0 ** -126, "f64": 2.0 ** -1022}
LARGEST = {"f16": 65504.0, "bf16": 3.39e38, "f32": 3.4e38, "f64": 1.79e308}
LIMIT = 4.0


def word_of(d):
    said = d.attrs.get("dtype", b"")
    said = said.decode() if isinstance(said, bytes) else str(said)
    return said or {"<f2": "f16", "<f4": "f32", "<f8": "f64", "<i4": "i32"}[d.dtype.str]


def numbers(d):
    a = d[()]
    return (a.astype("<u4") << 16).view("<f4") if word_of(d) == "bf16" else a


def rounding(x, word):
    """Mean square of one rounding of the numbers x to the format; of 400 for float32 and float64."""
    return (EPS[word] ** 2 * 0.54 * x ** 2 + (TINY[word] * EPS[word]) ** 2) / 12 * (400 if EPS[word] < 1e-6 else 1)


def ratios(c, hi, lo, word):
    """(the tensor's error in floors, the worst row's / 4, the worst element's squared / 4, infinite numbers that
    differ)."""
    c, hi, lo = (np.atleast_1d(np.asarray(t, np.float64)) for t in (c, hi, lo))
    top = LARGEST[word] / 2
    inf = lambda t: np.where(np.abs(t) < top, 0, np.where(np.isnan(t), 2, np.sign(t)))
    with np.errstate(invalid="ignore"):  # the floor's run has such a mask, too: the least number of float16
        masks = (np.abs(lo) >= LARGEST["f16"] / 2) & (np.abs(c - lo) <= np.abs(lo) / 100) & (np.sign(lo) == inf(hi))
    differ = int(((inf(c) != inf(hi)) & ~masks).sum())
    finite = (inf(c) == 0) & (inf(hi) == 0) & (inf(lo) == 0)
    z = lambda t: np.where(finite, t, 0)
    rows = lambda t: t.reshape(-1, t.shape[-1]).sum(1)

    def most(x, y):
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(x == 0, 0, x / y).max())

    with np.errstate(invalid="ignore", over="ignore"):
        e, f, r = z(c - hi) ** 2, z(lo - hi) ** 2, z(rounding(z(hi), word))
    row = np.maximum(np.maximum(rows(f), rows(r)), rows(f).mean() / 4)
    q = 4 if c.size < 128 else 1
    return (most(e.sum(), max(f.sum(), r.sum())) / q, most(rows(e), row) / 4 / q,
            most(e.max(), max(f.max(), r.max())) / 4 / q, differ)


def coarser(a, b):
    return max((x for x in (a, b) if x in EPS), key=lambda x: EPS[x], default="f32")


def tensors_of(path):
    """(step, name) -> dataset of an open recording."""
    held = {}
    for step in (k for k in path if k.startswith("step.")):
        for k, d in path[step].items():
            inner = [(k, d)] if isinstance(d, h5py.Dataset) else [
                (j if d.attrs.get("continues") else f"{k}.{j}", x) for j, x in d.items()]
            held.update({(int(step[5:]), name): x for name, x in inner})
    return held


def judge(cand_path, replayed_path, again=False):
    """The lines of the replay file's results, each with ratio (in floors), differ (infinite numbers, ids) and wrong.
    again: of the second round, where there is one; None for what that round took out."""
    with h5py.File(cand_path, "r", locking=False) as cand, h5py.File(replayed_path, "r") as rep:
        held = tensors_of(cand)
        out = [json.loads(x) for x in rep["replay/results"][()]]

        def three(step, name):
            """What the candidate has, what was expected, the floor's run, and the format of the floor."""
            g, d = rep[f"step.{step}"][name], held[step, name]
            hi, lo = (g["again"], g["again_floor"]) if again and "again" in g else (g["expected"], g["floor"])
            return numbers(d), hi[()], lo[()], word_of(d)

        by = {(r["step"], r["name"]): r for r in out}
        choices = {(r["step"], r["scores"]) for r in out if r["kind"] == "choice"}
        for r in out:
            c, hi, lo, word = three(r["step"], r["name"])
            r.update(ratio=0.0, differ=0, elements=int(c.size))
            if r["kind"] == "numbers":
                if (r["step"], r["name"]) in choices:  # beside ids: a set of scores, in any order
                    c, hi, lo = (-np.sort(-np.asarray(t, np.float64), -1) for t in (c, hi, lo))
                *found, r["differ"] = ratios(c, hi, lo, coarser(word, r["floor_format"]))
                r["ratio"] = max(found)
                r["wrong"] = not r["ratio"] <= LIMIT or r["differ"] > 0
            elif r["kind"] == "ids":
                r["differ"] = int((c != hi).sum())
                r["wrong"] = r["differ"] > int((hi != lo).sum())
            else:
                r["wrong"] = not _same_set(c, hi, three(r["step"], r["scores"]), coarser(
                    three(r["step"], r["scores"])[3], by[r["step"], r["scores"]]["floor_format"]))
    return sorted(out, key=lambda r: r["node"])


def _same_set(ids, expected, scores, word):
    """Whether the chosen ids are the expected ones in any order. Others are a tie if, sorted by their scores, the
    scores agree within the limit; then the scores alone say what is right."""
    if ids.shape != scores[0].shape:
        return bool((np.sort(ids, -1) == np.sort(expected, -1)).all())
    down = lambda t: -np.sort(-np.asarray(t, np.float64), -1)
    *found, differ = ratios(*(down(t) for t in scores[:3]), word)
    other = (np.sort(ids, -1) != np.sort(expected, -1)).any(-1)
    if not other.any():
        of = lambda i, w: np.take_along_axis(np.asarray(w, np.float64), np.argsort(i, -1, kind="stable"), -1)
        *found, differ = ratios(of(ids, scores[0]), of(expected, scores[1]), of(expected, scores[2]), word)
    return max(found) <= LIMIT and not differ


def verdict(rows):
    """What `vernier compare --format json` says of the wrong nodes, as far as `replay --again` reads it."""
    wrong = [dict(name=r["name"], step=r["step"], origin=True) for r in rows if r["wrong"]]
    return dict(origins=[f"step.{w['step']}/{w['name']}" if w["step"] else w["name"] for w in wrong],
                divergences=wrong, checkpoints=wrong)
