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
    """Mean square of one rounding of the numbers x to the format; of 400 for float32."""
    return (EPS[word] ** 2 * 0.54 * x ** 2 + (TINY[word] * EPS[word]) ** 2) / 12 * (400 if word == "f32" else 1)


def ratios(c, hi, lo, word):
    """(the tensor's error in floors, the worst row's / 4, the worst element's squared / 4, infinite numbers that
    differ)."""
    c, hi, lo = (np.atleast_1d(np.asarray(t, np.float64)) for t in (c, hi, lo))
    top = LARGEST[word] / 2
    inf = lambda t: np.where(np.abs(t) < top, 0, np.where(np.isnan(t), 2, np.sign(t)))
    differ = int((inf(c) != inf(hi)).sum())
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


def choice(c, hi, lo, scores, word):
    """Ids beside scores: the scores in descending order must agree within their floor."""
    down = lambda t: -np.sort(-np.asarray(t, np.float64), -1)
    return ratios(*(down(t) for t in scores), word)


def coarser(a, b):
    return max((x for x in (a, b) if x in EPS), key=lambda x: EPS[x], default="f32")


def judge(cand_path, replayed_path, again=False):
    """One dict for each judged result: name, step, node, ratio, differ, wrong, region, extra."""
    out = []
    with h5py.File(cand_path, "r") as cand, h5py.File(replayed_path, "r") as rep:
        held = {}
        for step in (k for k in cand if k.startswith("step.")):
            for k, d in cand[step].items():
                for name, x in ([(k, d)] if isinstance(d, h5py.Dataset) else
                                [((j if d.attrs.get("continues") else f"{k}.{j}"), y) for j, y in d.items()]):
                    held[step, name] = x
        text = lambda v: v.decode() if isinstance(v, bytes) else str(v)
        for step in (k for k in rep if k.startswith("step.")):
            for name, g in rep[step].items():
                d = held[step, name]
                kind, more = text(g.attrs["kind"]), again and "again" in g
                hi, lo = (g["again"], g["again_floor"]) if more else (g["expected"], g["floor"])
                row = dict(name=name, step=int(step[5:]), node=int(g.attrs["node"]), ratio=0.0, differ=0, wrong=False,
                           region=json.loads(text(g.attrs["region"])), extra=json.loads(text(g.attrs["extra"])),
                           kind=kind, reference=text(g.attrs["name"]), elements=int(d.size))
                word = coarser(word_of(d), text(g.attrs["floor_format"]))
                if kind == "numbers":
                    *found, row["differ"] = ratios(numbers(d), hi[()], lo[()], word)
                    row["ratio"] = max(found)
                    row["wrong"] = not row["ratio"] <= LIMIT or row["differ"] > 0
                    row["beside"] = name
                out.append(row)
                if kind == "ids":
                    row["wrong"] = int((numbers(d) != hi[()]).sum()) > int((hi[()] != lo[()]).sum())
        by = {(r["step"], r["name"]): r for r in out}
        for r in out:  # a choice: the scores beside it, sorted
            if r["kind"] == "choice":
                g = rep[f"step.{r['step']}"][r["name"]]
                scores = text(g.attrs["scores"])
                other = by.get((r["step"], scores))
                if other is None:
                    continue
                s = rep[f"step.{r['step']}"][scores]
                more = again and "again" in s
                d = held[f"step.{r['step']}", scores]
                a = (numbers(d), *(s[k][()] for k in (("again", "again_floor") if more else ("expected", "floor"))))
                *found, differ = choice(None, None, None, a, coarser(word_of(d), text(s.attrs["floor_format"])))
                other.update(ratio=max(found), differ=differ, wrong=not max(found) <= LIMIT or differ > 0)
    return sorted(out, key=lambda r: r["node"])


def verdict(rows):
    """What `vernier compare --format json` says of the wrong nodes, as far as `replay --again` reads it."""
    wrong = [dict(name=r["name"], step=r["step"], origin=True) for r in rows if r["wrong"]]
    return dict(origins=[f"step.{w['step']}/{w['name']}" if w["step"] else w["name"] for w in wrong],
                divergences=wrong, checkpoints=wrong)
