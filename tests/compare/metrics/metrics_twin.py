#!/usr/bin/python3
"""metrics_twin.py: every metric of `vernier compare` against its definition, computed again.

    metrics_twin.py VERNIER

writes two recordings that hold every pair of formats in many shapes of trouble (huge and
tiny mixed, subnormal, all equal, all zero, one element, one giant channel, signs, NaN and
infinities), records trained fixtures in four precisions, compares them, and computes each
metric of compare/metrics/metrics.h again: sums in long double, the divergence of logits with 48
digits. Every value must agree to 1e-12 (relative; of a cosine and of a scale, which are shares of 1,
absolute); counts, indices and distances in ULP exactly. Then the same comparisons again with one
and two threads and every kernel the processor has: the reports must hold the same digits.

Prints the worst deviation of each metric. Exit status 77 without h5py.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from twin import Twin, decode, encode, FORMATS, MARKED  # noqa: E402

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "fixtures")
MODEL = "qwen2-trained"
TOLERANCE = 1e-12
LONG = 70000  # more than a slice, and than a unit of work
worst = {}  # metric: (deviation, where)
wrong = []


# ---- the recordings --------------------------------------------------------------

def start(path):
    f = h5py.File(path, "w")
    f.attrs["format"], f.attrs["format_version"], f.attrs["complete"] = "vernier-checkpoint", 1, 1
    run = f.create_group("run")
    run.attrs["engine"], run.attrs["precision"] = "twin", "f32"
    run["token_ids"] = run["positions"] = np.arange(LONG, dtype=np.int32)
    return f


def put(f, step, name, x, form, axes, order):
    """A call of as many tokens as x has: in step 1 those of one, and so on, unless it is of logits."""
    tokens = x.shape[axes.split().index("token")] if "token" in axes else 1
    g = f.require_group(f"step.{step or tokens}")
    g.attrs["position"], g.attrs["tokens"] = 0, tokens
    d = g.create_dataset(name, data=encode(x, form))
    d.attrs["order"], d.attrs["axes"] = order, axes
    if form in MARKED:
        d.attrs["dtype"] = form


def cases(rng, rf, cf):
    """Name, reference, candidate, axes: of magnitudes that the formats can hold."""
    top = min(FORMATS[rf].max, FORMATS[cf].max)
    low = max(FORMATS[rf].least, FORMATS[cf].least)
    unit = 100.0 if "i32" in (rf, cf) else 1.0
    normal = lambda *shape: rng.standard_normal(shape) * unit
    noisy = lambda x, by=1e-3: x * (1 + by * rng.standard_normal(x.shape))
    x = normal(7, 300)
    yield "random", x, noisy(x), "token hidden"
    yield "unrelated", x, normal(7, 300), "token hidden"
    yield "opposite", x, -x, "token hidden"
    flips = x.copy()
    flips[rng.random(x.shape) < 0.01] *= -1
    yield "signs", x, flips, "token hidden"
    yield "equal", x, x, "token hidden"
    yield "heads", normal(3, 5, 40), normal(3, 5, 40), "head token key"
    x = normal(5, 33, 3)
    yield "middle", x, noisy(x), "channel token hidden"
    x = normal(5000)
    yield "vector", x, noisy(x, 0.1), "hidden"
    yield "scalar-like", normal(1), normal(1), "hidden"
    x = rng.standard_normal((6, 250)) * 2.0 ** rng.uniform(np.log2(low), np.log2(top) - 3, (6, 250))
    yield "mixed", x, noisy(x, 0.01), "token hidden"
    yield "mixed-unrelated", x, np.roll(x, 1, 1), "token hidden"
    rows = np.abs(normal(9, 64)) * (2.0 ** np.linspace(np.log2(low) + 3, np.log2(top) - 6, 9))[:, None]
    yield "rows", rows, noisy(rows), "token hidden"
    yield "rows-reversed", rows, rows[::-1].copy(), "token hidden"
    yield "tiny", low * rng.integers(-9, 9, (4, 50)), low * rng.integers(-9, 9, (4, 50)), "token hidden"
    yield "huge", top * rng.uniform(-1, 1, (4, 50)), top * rng.uniform(-1, 1, (4, 50)), "token hidden"
    yield "huge-tiny", top * rng.uniform(0.1, 1, (4, 50)), low * rng.integers(1, 9, (4, 50)), "token hidden"
    yield "tiny-huge", low * rng.integers(1, 9, (4, 50)), top * rng.uniform(0.1, 1, (4, 50)), "token hidden"
    yield "tops", np.full((2, 30), FORMATS[rf].max), -np.full((2, 30), FORMATS[cf].max), "token hidden"
    zero, one = np.zeros((3, 20)), np.full((3, 20), 3 * unit)
    yield "zeros", zero, zero, "token hidden"
    yield "to-zero", one, zero, "token hidden"
    yield "from-zero", zero, one, "token hidden"
    yield "minus-zero", zero, -zero, "token hidden"
    yield "constant", one, one + unit, "token hidden"
    half = one.copy()
    half[1] = 0
    yield "zero-row", half, noisy(half), "token hidden"
    yield "zero-row-filled", half, one, "token hidden"
    giant = normal(6, 128)
    giant[:, 77] *= top / unit / 64
    off = noisy(giant)
    off[:, 77] = giant[:, 77] * 0.85
    yield "channel", giant, off, "token hidden"
    if rf == "i32" or cf == "i32":
        return
    for where in ("reference", "candidate", "both"):
        for what in (np.nan, np.inf, -np.inf):
            x = normal(5, 300)
            y = noisy(x)
            if where != "candidate":
                x[1, 7] = x[3, ::3] = what
            if where != "reference":
                y[1, 7] = y[3, ::3] = what
            yield f"{where}-{what}", x, y, "token hidden"
    nothing = np.full((2, 9), np.nan)
    yield "no-number", nothing, nothing, "token hidden"


def scores(rng, rf, cf):
    if "i32" in (rf, cf):
        return  # logits are real numbers: whole ones are a finding, not a measure
    unit = 3
    x = unit * rng.standard_normal((3, 70))
    yield x, x + 0.01 * rng.standard_normal(x.shape)
    yield x, unit * rng.standard_normal(x.shape)
    yield np.round(x), np.round(x + 0.4 * rng.standard_normal(x.shape))
    if rf == cf == "f32":
        for by in (1e-2, 1e-4, 1e-6):
            long = 4 * rng.standard_normal((1, 4500))
            yield long, long + by * rng.standard_normal(long.shape)
        yield x, x + 1e-5 * rng.standard_normal(x.shape)
        yield x + 1e6, x + 1e6 + 3
        yield x * 1e37, x * 1e37
        yield x - 1e35, x[::-1] - 1e35
        yield np.zeros((3, 200)), 1e-3 * rng.standard_normal((3, 200))
        yield x, np.where(rng.random(x.shape) < 0.1, -300.0, x)
        masked, both = x.copy(), x + 0.01
        masked[:, 5:50] = both[:, 5:50] = -np.inf
        yield masked, both
        nan = x.copy()
        nan[2, 3] = np.nan
        yield x, nan
    if rf == cf == "f64":
        yield x, x * (1 + 1e-12 * rng.standard_normal(x.shape))
        yield x * 1e200, x * 1e200 * (1 + 1e-3 * rng.standard_normal(x.shape))


def synthetic(d):
    """Paths of both files."""
    rng = np.random.default_rng(4)
    a, b = start(os.path.join(d, "ref.h5")), start(os.path.join(d, "cand.h5"))
    order, step = 0, LONG
    for rf in FORMATS:
        for cf in FORMATS:
            for name, r, c, axes in cases(rng, rf, cf):
                put(a, None, f"{rf}/{cf}/{name}", r, rf, axes, order)
                put(b, None, f"{rf}/{cf}/{name}", c, cf, axes, order)
                order += 1
            for i, (r, c) in enumerate(scores(rng, rf, cf)):
                step += 1
                width = r.shape[1] - i  # steps of one width would have their channels together
                put(a, step, "logits", r[:, :width], rf, "token vocab", order)
                put(b, step, "logits", c[:, :width], cf, "token vocab", order)
    x = rng.standard_normal((3, LONG))
    for k, (r, c, axes) in enumerate(((x, x * 1.001, "token hidden"), (x, x + 1e-3, ""),
                                      (x.T.copy(), x.T * 0.999, "token hidden"))):
        put(a, None, f"long/{k}", r, "f32", axes, order + k)
        put(b, None, f"long/{k}", c, "f32" if k else "bf16", axes, order + k)
    a.close()
    b.close()
    return os.path.join(d, "ref.h5"), os.path.join(d, "cand.h5")


# ---- comparing -------------------------------------------------------------------

def compare(vernier, ref, cand, *more, kernel=None, threads=2):
    env = dict(os.environ, **({"VERNIER_KERNEL": kernel} if kernel else {}))
    limits = os.path.join(os.path.dirname(cand), "any.yaml")
    with open(limits, "w", encoding="utf-8") as f:
        f.write("version: 1\nname: any\ndefaults: { nmse: 1.0e+300 }\n")
    args = [] if "--bitwise" in more else ["--limits", limits]
    done = subprocess.run([vernier, "compare", ref, cand, "--format", "json", "--threads", str(threads), "--allow",
                           "precision,steps", *args, *more],
                          capture_output=True, text=True, env=env)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return done.stdout


def value_of(point, metric):
    flag = point.get("metrics_not_finite", {}).get(metric)
    return float(flag) if flag else point["metrics"][metric]


def deviation(metric, ours, theirs):
    if np.isnan(theirs) or np.isinf(theirs) or theirs == 0:
        return 0.0 if ours == theirs or (np.isnan(ours) and np.isnan(theirs)) else abs(ours) if theirs == 0 else np.inf
    if "cosine" in metric or metric.endswith("scale"):  # a factor, as its distance from 1
        return abs(ours - theirs) / max(1, abs(theirs))
    return abs(ours - theirs) / abs(theirs)


def check(label, point, r, c, rf, cf, scores, logits):
    twin = Twin(r, c, rf, cf, point["axes"].split(), scores, logits)
    for metric in point["metrics"]:
        ours, theirs = value_of(point, metric), twin.metric(metric)
        if theirs is None:
            continue
        off = deviation(metric, ours, float(theirs))
        if off > worst.get(metric, (-1, ""))[0]:
            worst[metric] = off, label
        if not off <= TOLERANCE:
            wrong.append(f"{label}: {metric} is {ours!r}, the twin says {float(theirs)!r}: off by {off:.2g}")
    wrong.extend(f"{label}: {words}" for words in twin.places(point))


def numbers(f, step, name):
    """float64, and the format they are in."""
    d = f[f"step.{step}/" + name.replace(".", "/")]
    mark = d.attrs.get("dtype", "")
    mark = mark.decode() if isinstance(mark, bytes) else mark
    return decode(d[()], mark), mark or {"float16": "f16", "float32": "f32", "float64": "f64",
                                         "int32": "i32"}[d.dtype.name]


def check_all(label, report, ref, cand, bitwise=False):
    n = 0
    with h5py.File(ref) as a, h5py.File(cand) as b:
        for point in json.loads(report)["checkpoints"]:
            where = f"{label}{point['name']}"
            if bitwise and point.get("detail", "").endswith("the bits cannot be equal"):
                continue  # two formats
            if not point["metrics"]:
                wrong.append(f"{where} was not measured: {point.get('detail')}")
                continue
            name = re.sub(r"^step\.\d+/", "", point["name"])
            r, rf = numbers(a, point["step"], name)
            c, cf = numbers(b, point["step"], name)
            check(where, point, r, c, rf, cf, name == "logits" and not bitwise, name == "logits")
            n += 1
    return n


def digits(report):
    """What must not depend on threads or kernel."""
    return report[report.index('"checkpoints"'):]


def check_digits(vernier, ref, cand, report, runs):
    for kernel, threads in runs:
        if digits(compare(vernier, ref, cand, kernel=kernel, threads=threads)) != digits(report):
            wrong.append(f"{os.path.basename(cand)}: kernel {kernel}, {threads} threads: other digits")


def real(vernier, d, kernels):
    made, n = {}, 0
    for precision in ("f64", "f32", "f16", "bf16"):
        made[precision] = os.path.join(d, f"{precision}.h5")
        subprocess.run([vernier, "capture", "ref", os.path.join(FIXTURES, MODEL), "--ids",
                        "@" + os.path.join(FIXTURES, "prompts", "p017.ids"),
                        "--points", "*", "--precision", precision, "-o", made[precision]], check=True,
                       capture_output=True)
    for a, b in (("f64", "f32"), ("f32", "f16"), ("f32", "bf16"), ("f16", "bf16")):
        report = compare(vernier, made[a], made[b])
        n += check_all(f"{MODEL} {a} {b}: ", report, made[a], made[b])
        check_digits(vernier, made[a], made[b], report, [(kernels[-1], 1)])
    return n


def main(vernier):
    refused = subprocess.run([vernier, "compare", "a", "b"], capture_output=True, text=True,
                             env=dict(os.environ, VERNIER_KERNEL="?"))
    kernels = re.search(r"this processor has (.*)", refused.stderr).group(1).split(", ")
    with tempfile.TemporaryDirectory() as d:
        ref, cand = synthetic(d)
        report = compare(vernier, ref, cand)
        n = check_all("", report, ref, cand)
        check_digits(vernier, ref, cand, report, [(k, t) for k in kernels for t in (1, 2)])
        n += check_all("bitwise ", compare(vernier, ref, cand, "--bitwise"), ref, cand, bitwise=True)
        n += real(vernier, d, kernels)
    print(f"{n} pairs of tensors; kernels {', '.join(kernels)} and 1 and 2 threads give the same digits")
    for metric, (off, where) in worst.items():
        print(f"{metric:20} off by at most {off:.2g}" + (f" ({where})" if off else ""))
    for line in wrong[:40]:
        print("WRONG", line)
    if len(wrong) > 40:
        print(f"and {len(wrong) - 40} more")
    return 1 if wrong or n < 1000 or len(worst) < 21 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
