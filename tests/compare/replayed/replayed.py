"""replayed.py VERNIER: compare --replayed: floors against numpy, right and wrong engines, bad files.

The files are those of tests/support/any_model.py. The rules of floors are written here once more, after
specs/compare.md (Any model), and know nothing of vernier's code."""

import json, os, shutil, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
try:
    import h5py
    import numpy as np
    import any_model as A
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

VERNIER = sys.argv[1]
HERE = tempfile.mkdtemp(prefix="replayed.")
failures = []


def check(ok, what):
    if not ok:
        failures.append(what)
        print(f"FAILED: {what}")


def vernier(*words):
    p = subprocess.run([VERNIER, *words], capture_output=True, text=True, cwd=HERE)
    return p.returncode, p.stdout, p.stderr


def compare(ref, cand, replayed, *more):
    status, out, err = vernier("compare", ref, cand, "--replayed", replayed, "--format", "json", *more)
    return status, json.loads(out) if status < 2 else None, err


def rows(report):
    return {(r["step"], r["name"]): r for r in report["checkpoints"]}


def origins(report):
    return report["origins"]


# ---- floors, in numpy --------------------------------------------------------------------------

FORMATS = {  # digits, least normal number, largest number
    "f16": (10, 2.0**-14, 65504.0),
    "bf16": (7, 2.0**-126, 3.3895313892515355e38),
    "f32": (23, 2.0**-126, 3.4028234663852886e38),
    "f64": (52, 2.0**-500, 1.7976931348623157e308),
}


def floors(c, a, f, fmt, allow=1):
    """(of the tensor, of the worst row, of the worst element not squared, infinities that differ)."""
    digits, least, largest = FORMATS[fmt]
    kind = lambda x: np.where(np.isnan(x), 2, np.where(np.abs(x) < largest / 2, 0, np.sign(x)))
    good = (kind(c) == 0) & (kind(a) == 0) & (kind(f) == 0)
    with np.errstate(invalid="ignore"):
        narrow = (np.abs(f) >= 32752) & (np.abs(c - f) <= np.abs(f) / 100) & (np.sign(f) == kind(a))
    z = lambda x: np.where(good, x, 0.0)
    with np.errstate(all="ignore"):
        e, d, r = (
            z(c - a) ** 2,
            z(f - a) ** 2,
            z((2.0**-digits) ** 2 * 0.54 * a * a + (least * 2.0**-digits) ** 2) / 12,
        )
    r = r * (400 if digits > 10 else 1)
    by_row = lambda x: x.reshape(-1, x.shape[-1]).sum(1)
    row = np.maximum(np.maximum(by_row(d), by_row(r)), by_row(d).mean() / 4)
    div = lambda x, y: float(np.max(np.where(x == 0, 0.0, x / np.where(y == 0, 1, y))))
    return (
        div(e.sum(), max(d.sum(), r.sum())) / allow,
        div(by_row(e), row) / allow,
        np.sqrt(div(e.max(), max(d.max(), r.max())) / allow),
        int(((kind(c) != kind(a)) & ~narrow).sum()),
    )


def one_node(op, shape, fmt, make, floor=True, foreign=None):
    """A model of one node whose numbers are these: its expected ones, the floor's, the candidate's. Files ref, cand and
    replayed; returns the three as the files hold them."""
    fine = "f64" if fmt == "f32" else "f32"
    a, f, c = make()
    a, f, c = A.ROUND[fine](a), A.ROUND[fmt](f), A.ROUND[fmt](c)
    graph = [A.Node("x", op, ["in.a"], None), A.Node("", "result", ["x"], None, names=["out.0"])]
    ids = np.arange(4, dtype=np.int32)
    value = lambda x: {(0, "in.a"): ids, (0, "x"): x, (0, "out.0"): x}
    sides = [A.record(f"{HERE}/{n}.h5", graph, value(x), k) for n, x, k in (("cand", c, fmt), ("ref", a, fine))]
    with h5py.File(f"{HERE}/replayed.h5", "w") as h:
        A.start(h, "vernier-replayed")
        h.create_group("run").attrs.update(candidate=sides[0], reference=sides[1], format=fmt, tool="test")
        lines = []
        for i, k in enumerate(("x", "out.0")):
            g = h.create_group(f"step.0/{k}")
            A.put(g, "expected", a if i == 0 else c, fine)
            if floor:
                A.put(g, "floor", f if i == 0 else c, fmt)
            lines.append(dict(step=0, name=k, node=i, op=op, kind="numbers", region=[], reads=[]))
        A.lines(h.create_group("replay"), "results", lines)
    return [np.asarray(x, np.float64) for x in (c, a, f)]


def test_floors():
    r = np.random.default_rng(5)
    n = 0
    for fmt in ("bf16", "f16", "f32"):
        for shape in ((), (7,), (5, 1), (40, 4), (12, 33), (2, 9, 16), (3, 700)):
            for what in ("noise", "short", "masks", "narrow masks", "no floor", "zeros", "conv"):
                scale = 2.0 ** -FORMATS[fmt][0]

                def make():
                    a = r.standard_normal(shape) * 3
                    if what == "zeros":
                        a = a * 0
                    if what == "short" and len(shape) > 1:
                        a[..., :] *= 10.0 ** -r.integers(0, 6, shape[:-1])[..., None]
                    f, c = a + a * scale * r.standard_normal(shape), a + a * scale * r.standard_normal(shape) * 1.7
                    if what == "short" and len(shape) > 1:
                        c = c + scale * r.standard_normal(shape)
                    if what == "masks" and a.size > 8:
                        flat = [x.reshape(-1) for x in (a, f, c)]
                        big = 0.9 * FORMATS[fmt][2]
                        for x in flat:
                            x[:3] = -np.inf, -big, big
                        flat[2][3], flat[1][4], flat[2][1] = np.nan, np.inf, -np.inf
                    if what == "narrow masks" and a.size > 8 and fmt != "f16":  # of float16: the first three are right
                        for x, values in zip((a, f, c), (
                                (-3.4e38, 3.3e38, -np.inf, -3.4e38, -3.4e38, -3.4e38),
                                (-65504, 65504, -65504, -65504, -65504, -8.0),
                                (-65504, 65400, -65504, -60000, 65504, -8.0))):
                            x.reshape(-1)[:6] = values
                    return a, f, c

                c, a, f = one_node("Conv1d" if what == "conv" else "Linear", shape, fmt, make, what != "no floor")
                allow = 1 if what != "conv" else 40 if fmt == "f32" else 1.5
                with_row = lambda x: x.reshape(1, -1) if x.ndim == 0 else x
                want = floors(with_row(c), with_row(a), with_row(f if what != "no floor" else a), fmt, allow)
                status, report, err = compare("ref.h5", "cand.h5", "replayed.h5")
                if report is None:
                    check(False, f"{fmt} {shape} {what}: {err}")
                    continue
                got = rows(report)[(0, "x")]["replay"]
                number = lambda k: got.get(k) if got.get(k) is not None else float("inf")
                have = (number("local_over_floor"), number("worst_token_over_floor"), number("max_abs_over_floor"))
                n += 1
                check(
                    got["nonfinite"] == want[3],
                    f"{fmt} {shape} {what}: infinite {got['nonfinite']}, numpy {want[3]}",
                )
                for i, k in enumerate(("tensor", "row", "element")):
                    if i == 0 and want[3]:
                        continue  # infinitely far outside
                    check(
                        abs(have[i] - want[i]) <= 1e-6 * max(want[i], 1e-12),
                        f"{fmt} {shape} {what}: {k} {have[i]}, numpy {want[i]}",
                    )
                slack = 4 if c.size < 128 else 1
                worst = max(want[0] / 4, want[1] / 16, want[2] ** 2 / 16) / slack
                wrong = bool(want[3]) or worst > 1
                if abs(worst - 1) > 1e-6:
                    check(
                        got["operation_wrong"] == wrong,
                        f"{fmt} {shape} {what}: wrong {got['operation_wrong']}, numpy {wrong}",
                    )
    print(f"floors: {n} tensors")


# ---- engines -----------------------------------------------------------------------------------


def engine(name, graph, steps=1, fmt="bf16", change=None, names=None, removed=(), **k):
    """Records a candidate and replays it. Returns the exit status and the report of compare."""
    x = A.tokens(steps=steps)
    ref = A.model()
    values = A.run(ref, x, "f64" if fmt == "f32" else "f32")
    sides = [A.record(f"{HERE}/ref.h5", ref, values, "f64" if fmt == "f32" else "f32")]
    values = A.run(graph, x, fmt, change)
    sides.insert(0, A.record(f"{HERE}/{name}.h5", graph, values, fmt, names))
    A.replay(f"{HERE}/{name}.replayed.h5", ref, values, fmt, sides, names, removed, **k)
    return compare("ref.h5", f"{name}.h5", f"{name}.replayed.h5")


def second_round(name, graph, **k):
    """The first round's wrong operations are computed in the second."""
    status, report, err = engine(name, graph, **k)
    wrong = {o.split("/")[-1] for o in origins(report)}
    gone = [n for node in A.model() if wrong & set(node.out) for n in node.out]
    return (status, report) + engine(name, graph, removed=gone, **k)[:2]


def notes(report, word):
    return [n for n in report["notes"] if word in n]


def test_right():
    for fmt in ("bf16", "f16", "f32"):
        for steps in (1, 3):
            status, report, err = engine("good", A.model(), steps, fmt)
            check(
                status == 0 and not origins(report),
                f"a right engine in {fmt}: {status} {err} {report and origins(report)}",
            )
    check(len(notes(report, "computed 57 results")) == 1, f"who computed what: {report['notes']}")
    status, report, err = engine("order", A.model(order="id"))
    check(status == 0, f"experts in another order: {origins(report)}")
    first, _, status, report = second_round("first", A.model(scale_first=True))
    check(first == 1 and status == 0, f"the scale in front of the product: {first}, then {status}")
    said = notes(report, "computed in another order")
    check(
        len(said) == 1 and "model.layers.*.proj (2)" in said[0],
        f"another order is said once, with its places: {said}",
    )


def test_wrong():
    status, report, err = engine("scale", A.model(scale=0.3))
    check(
        status == 1 and origins(report) == ["model.layers.0.mul.0", "model.layers.1.mul.0"],
        f"a wrong scale: {origins(report)}",
    )
    check(
        "model.layers.*.mul.0 (2)" in report["start"], f"one mistake in all layers is one place: {report['start']}"
    )
    status, report, err = engine("norm", A.model(norm_chosen=True))
    check(
        status == 1 and origins(report)[0] == "model.layers.0.gate:1", f"weights that sum to 1: {origins(report)}"
    )
    first, _, status, report = second_round("scale", A.model(scale=0.3))
    check(
        status == 1 and origins(report) == ["model.layers.0.mul.0", "model.layers.1.mul.0"],
        f"a fault goes on in the second round: {origins(report)}",
    )

    def late(node, step, out):
        if step == 2 and node.path == "model.layers.1.experts":
            return [out[0] * 1.02]

    status, report, err = engine("late", A.model(), 3, change=late)
    check(
        status == 1 and origins(report) == ["step.2/model.layers.1.experts"],
        f"a fault in one step: {origins(report)}",
    )
    # with modules alone, the functions between them are computed with what reads them
    modules = {k for n in A.model() if n.module for k in n.out}
    status, report, err = engine("few", A.model(scale=0.3), names=modules)
    row = rows(report)[(0, "model.layers.0.gate")]
    check(status == 1 and origins(report)[0].startswith("model.layers.0.gate"), f"in its region: {origins(report)}")
    check(row["replay"]["span"] == 2, f"a region has its size: {row['replay']['span']}")
    check(
        "in model.layers.0, model.layers.0.gate" in report["start"] or "in model.layers.0," in report["start"],
        f"the place is the region: {report['start']}",
    )
    check(len(origins(report)) <= 2, f"one region is charged once: {origins(report)}")


def test_faded():
    """A wrong result is cleared only if what was computed through it is clearly right in the second round."""
    name, reader = "model.layers.0.proj", "model.layers.0.mul.0"
    for floors_again, cleared in ((1.5, True), (3, False)):
        engine("good", A.model())
        with h5py.File(f"{HERE}/good.h5", "r") as f:
            cand = (f[f"step.0/{reader}"][()].astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        with h5py.File(f"{HERE}/good.replayed.h5", "r+") as f:
            wrong, right = f[f"step.0/{name}"], f[f"step.0/{reader}"]
            numbers = wrong["expected"][()] * np.float32(1.1)
            del wrong["expected"], wrong["floor"]
            A.put(wrong, "expected", numbers, "f32")
            A.put(wrong, "floor", A.bf16(numbers), "bf16")
            a = right["expected"][()].astype(np.float64)
            b = (right["floor"][()].astype(np.uint32) << 16).view(np.float32).astype(np.float64)
            one = (2.0**-7) ** 2 * 0.54 * (a * a).sum() / 12
            each = np.sqrt(floors_again * max(((b - a) ** 2).sum(), one) / a.size)
            signs = np.where(np.arange(a.size).reshape(a.shape) % 2, 1, -1)
            A.put(right, "again", cand + each * signs, "f32")
            A.put(right, "again_floor", cand + each * signs + (b - a), "f32")
            text = [json.loads(x) for x in f["replay/results"][()]]
            for t in text:
                if t["name"] == reader:
                    t["again_region"] = [name]
            del f["replay/results"]
            A.lines(f["replay"], "results", text)
        status, report, err = compare("ref.h5", "good.h5", "good.replayed.h5")
        check(
            (origins(report) == []) == cleared,
            f"{floors_again} floors in the second round: {status} {origins(report)} {err}",
        )


def test_choices():
    def swapped(near):
        """Another expert is chosen in one row: there where the scores of the two are nearest, or farthest apart."""

        def change(node, step, out):
            if node.path != "model.layers.0.gate":
                return None
            scores, weights, ids = (x.copy() for x in out)
            order = np.argsort(-scores, -1, kind="stable")
            sorted_scores = np.take_along_axis(scores, order, -1)
            margin = sorted_scores[:, A.K - 1] - sorted_scores[:, A.K]
            row = int(np.argmin(margin) if near else np.argmax(margin))
            ids[row, -1] = order[row, A.K]
            weights[row, -1] = scores[row, order[row, A.K]]
            return [scores, weights, ids]

        return change

    status, report, err = engine("far", A.model(), change=swapped(False))
    check(status == 1 and origins(report) == ["model.layers.0.gate:2"], f"another expert: {origins(report)}")
    check(rows(report)[(0, "model.layers.0.gate:2")]["replay"].get("other_ids") == 1, "one choice is another")
    check("1 whole numbers are others" in json.dumps(report), "said in words")
    status, report, err = engine("near", A.model(), change=swapped(True))
    check(status == 0 and not origins(report), f"a tie is no error: {origins(report)}")
    check(
        len([n for n in notes(report, "ties: 1 choice is") if "model.layers.0.gate:2" in n]) == 1,
        f"a tie is said: {report['notes']}",
    )


def test_settings():
    settings = [dict(name=f"model.layers.{i}.norm", key="eps", candidate=1e-5, reference=1e-6) for i in range(24)]
    status, report, err = engine(
        "settings", A.model(), unjudged=["model.layers.0.proj", "model.layers.1.proj"], settings=settings
    )
    check(status == 0, f"settings alone are a note: {status} {err}")
    check(
        [n for n in notes(report, "settings: eps") if "model.layers.*.norm (24)" in n] != [],
        f"settings: {report['notes']}",
    )
    check(
        [n for n in notes(report, "not judged") if "other shape 2 (model.layers.*.proj (2))" in n] != [],
        f"unjudged: {report['notes']}",
    )


# ---- files that contradict themselves ----------------------------------------------------------


def test_bad():
    engine("good", A.model())
    ok = "good.replayed.h5"

    def broken(what, change, of=ok):
        shutil.copy(f"{HERE}/{of}", f"{HERE}/bad.h5")
        with h5py.File(f"{HERE}/bad.h5", "r+") as f:
            change(f)
        files = ["ref.h5", "good.h5", "bad.h5"] if of == ok else ["ref.h5", "bad.h5", ok]
        status, report, err = compare(*files)
        lines = [x for x in err.strip().splitlines() if not x.startswith("refused: ")]
        check(status == 2 and len(lines) == 1, f"{what}: {status}, {err}")
        print(f"   {what}: {err.strip().replace(HERE, '')[:160]}")

    def line(i, **k):
        def change(f):
            text = [json.loads(x) for x in f["replay/results"][()]]
            text[i].update(k)
            del f["replay/results"]
            A.lines(f["replay"], "results", [{a: b for a, b in t.items() if b is not None} for t in text])

        return change

    def delete(*paths):
        def change(f):
            for p in paths:
                del f[p]

        return change

    def attribute(path, key, value):
        def change(f):
            f[path].attrs[key] = value

        return change

    def nodes(change_rows):
        def change(f):
            text = change_rows([json.loads(x) for x in f["plan/nodes"][()]])
            del f["plan/nodes"]
            A.lines(f["plan"], "nodes", text)

        return change

    def edited(i, **k):
        return nodes(lambda t: [dict(x, **k) if n == i else x for n, x in enumerate(t)])

    broken("another candidate", attribute("run", "candidate", "0" * 32))
    broken("another reference", attribute("run", "reference", "f" * 32))
    broken("no digest of the candidate", attribute("run", "candidate", "x"))
    broken("no format", attribute("run", "format", "int4"))
    broken("incomplete", attribute("/", "complete", 0))
    broken("a later version", attribute("/", "format_version", 2))
    broken("no results", delete("replay"))
    broken(
        "a line that is no JSON",
        lambda f: (
            delete("replay/results")(f),
            f["replay"].create_dataset("results", data=["{"], dtype=h5py.string_dtype()),
        ),
    )
    broken("an unknown kind", line(3, kind="colours"))
    broken("a choice without scores", line(5, kind="choice", scores=None))
    broken("scores that are no result", line(6, kind="choice", scores="nothing"))
    broken("a step below 0", line(3, step=-1))
    broken("a name that the candidate lacks", line(3, name="nothing"))
    broken("a name that the reference lacks", line(3, reference="nothing"))
    broken("a name twice", line(3, name="model.layers.0.norm"))
    broken("nodes out of order", line(3, node=0))
    broken("a region that is no list", line(3, region="all"))
    broken("a region of numbers", line(3, region=[1]))
    broken("exchanged choices below 1", line(3, exchanged=0))
    broken("numbers that are missing", delete("step.0/model.layers.0.proj/expected"))
    broken("numbers that no result names", lambda f: A.put(f["step.0"], "more", np.zeros(3, np.float32), "f32"))
    broken(
        "numbers of another shape",
        lambda f: (
            delete("step.0/model.layers.0.proj/floor")(f),
            A.put(f["step.0/model.layers.0.proj"], "floor", np.zeros(3), "bf16"),
        ),
    )
    broken(
        "numbers that contradict their digest",
        lambda f: f["step.0/model.layers.0.proj/expected"].__setitem__((0, 0), 7),
    )
    broken("a recording in its place", lambda f: f.attrs.__setitem__("format", "vernier-checkpoint"))
    broken(
        "a replay file in place of the candidate",
        lambda f: f.attrs.__setitem__("format", "vernier-replayed"),
        "good.h5",
    )
    broken("a plan of another kind", attribute("plan", "kind", "onnx"), "good.h5")
    broken("a plan without nodes", delete("plan/nodes"), "good.h5")
    broken("a tensor that no node makes", edited(2, out=["other"]), "good.h5")
    broken("a result of two nodes", edited(2, out=["model.embed"]), "good.h5")
    broken("a node that reads a later one", edited(1, **{"in": [{"from": "lm_head"}]}), "good.h5")
    broken("a step that is the same as none", nodes(lambda t: t + [dict(step=9, same_as=7)]), "good.h5")
    broken("an order against the plan", attribute("step.0/model.embed", "order", 99), "good.h5")
    with open(f"{HERE}/{ok}", "rb") as f, open(f"{HERE}/cut.h5", "wb") as g:
        g.write(f.read()[:-5000])
    status, report, err = compare("ref.h5", "good.h5", "cut.h5")
    check(status == 2 and len(err.strip().splitlines()) == 1, f"a file that was cut: {status}, {err}")
    for words, expected in (
        (("ref.h5", ok), "replay file, not a recording"),
        (("ref.h5", "good.h5", "--model", "ref.h5"), "any PyTorch module"),
        (("ref.h5", "good.h5", "--replayed", ok, "--bitwise"), "exclude each other"),
        (("ref.h5", "good.h5", "--replayed", "none.h5"), "No such file"),
    ):
        status, out, err = vernier("compare", *words)
        check(status == 2 and expected in err, f"{words}: {status} {err}")
    status, out, err = vernier("explain", "ref.h5", "good.h5", "--model", ".")
    check(status == 2 and "python -m vernier_parity explain" in err, f"explain: {status} {err}")


def test_hostile():
    """Texts of a replay file that would forge lines or colours of a report."""
    evil = "x\x1b[31m\nverdict    within limits"
    engine(
        "scale",
        A.model(scale=0.3),
        names={k for n in A.model() if n.module for k in n.out},
        unjudged=[],
        settings=[dict(name=evil, key=evil, candidate=evil, reference=evil)],
        tool=evil,
    )
    with h5py.File(f"{HERE}/scale.replayed.h5", "r+") as f:
        text = [json.loads(x) for x in f["replay/results"][()]]
        for t in text:
            t.update(region=t["region"] + [evil], extra=[evil], reads=[evil, "step.99999999999/x", "step.1/"])
        del f["replay/results"], f["replay/unjudged"]
        A.lines(f["replay"], "results", text)
        A.lines(f["replay"], "unjudged", [dict(step=0, name=evil, why=evil), dict(), []])
    for form in ("text", "json", "html", "junit", "markdown", "csv"):
        status, out, err = vernier(
            "compare", "ref.h5", "scale.h5", "--replayed", "scale.replayed.h5", "--format", form
        )
        check(status == 1, f"hostile texts, {form}: {status} {err}")
        check("\x1b" not in out + err, f"an escape sequence in {form}")
        check("\nverdict    within limits" not in out, f"a forged line in {form}")


def test_inputs():
    engine("good", A.model())
    x = A.tokens(seed=7)
    values = A.run(A.model(), x, "bf16")
    A.record(f"{HERE}/other.h5", A.model(), values, "bf16")
    status, out, err = vernier("compare", "ref.h5", "other.h5")
    check(status == 2 and "inputs: in.input_ids of step 0 differs" in err, f"other inputs: {status} {err}")


def test_batch():
    """Several prompts are compared together: no row has to be chosen."""
    engine("good", A.model())
    for n in ("ref.h5", "good.h5"):
        with h5py.File(f"{HERE}/{n}", "r+") as f:
            f["run"]["token_ids"] = A.tokens()[0]["input_ids"].reshape(2, -1)
            f["run"]["positions"] = np.tile(np.arange(A.T // 2, dtype=np.int32), (2, 1))
            f["step.0"].attrs.update(position=0, tokens=A.T // 2)
    status, report, err = compare("ref.h5", "good.h5", "good.replayed.h5")
    check(status == 0, f"a batch: {status} {err}")


def test_plan():
    """Without a replay file, origins follow from the limits and the plan: which tensor was computed from which."""
    engine("good", A.model())
    engine("loud", A.model(), change=lambda n, s, out: [out[0] * 3] if n.path == "model.layers.0.proj" else None)
    status, out, err = vernier("compare", "ref.h5", "loud.h5", "--format", "json", "--points", "model*")
    report = json.loads(out)
    numbers = [o for o in origins(report) if not o.endswith("gate:2")]  # ids that rounding turned
    check(status == 1 and numbers == ["model.layers.0.proj"], f"by the plan: {origins(report)}")
    detail = next(d for d in report["divergences"] if d["name"] == "model.layers.0.proj")
    names = {i["name"] for i in detail["inputs"]}
    check(
        names == {"model.layers.0.norm"},
        f"the inputs of an operation: {names}",
    )


def test_next():
    engine("scale", A.model(scale=0.3))
    status, out, err = vernier("compare", "ref.h5", "scale.h5", "--format", "json")
    said = json.loads(out)["next"]
    check(
        status == 1
        and any(n.startswith("python -m vernier_parity replay") for n in said)
        and any("--replayed" in n for n in said),
        f"next without a replay file: {said}",
    )


# ---- names --------------------------------------------------------------------------------------


def explained(c, a=None, fmt="bf16", more=None):
    """What `compare --explain` says of x: (the words of its answers, the notes, status and error). c: what the
    candidate has in place of a. more: members of its line; "alternatives" as (line, numbers)."""
    a = A.ROUND[fmt](np.random.default_rng(3).standard_normal((30, 40)) * 2) if a is None else a
    one_node("Linear", a.shape, fmt, lambda: (a, a, c(np.array(a))))
    if more:
        with h5py.File(f"{HERE}/replayed.h5", "r+") as h:
            said = [json.loads(x) for x in h["replay/results"][()]]
            for i, (line, x) in enumerate(more.get("alternatives", ())):
                A.put(h["step.0/x"], f"alternative{i}", A.ROUND["f32"](x), "f32")
                A.put(h["step.0/x"], f"alternative{i}_floor", A.ROUND[fmt](x), fmt)
                said[0].setdefault("alternatives", []).append(line)
            said[0].update({k: v for k, v in more.items() if k != "alternatives"})
            del h["replay/results"]
            A.lines(h["replay"], "results", said)
    status, report, err = compare("ref.h5", "cand.h5", "replayed.h5", "--explain")
    if report is None:
        return [], [], (status, err)
    found = [e for e in report.get("explanations", []) if e["checkpoint"] == "x"]
    return [x["words"] for e in found for x in e["answers"]], report["notes"], (status, err)


def in_order(order, axis=-1):
    return lambda a: np.take(a, order, axis)


def changed(where, value):
    def change(a):
        a[where] = value
        return a

    return change


def test_names():
    """What the numbers alone show, and nothing where they show nothing."""
    late = [0, *range(29)]
    mixed = [*range(0, 40, 2), *range(1, 40, 2)]
    for change, want in (
        (lambda a: a * 1.1, "every element is multiplied by 1."),
        (lambda a: -a, "every element is multiplied by -1"),
        (lambda a: a + 0.5, "0.5"),
        (lambda a: np.minimum(a, 1.5), "clamped: numbers above 1.5"),
        (lambda a: a * 0, "every element is 0"),
        (in_order(late, 0), "rows 1-29 hold rows 0-28: 1 row late"),
        (in_order([*range(16)][::-1] + [*range(16, 40)]), "columns 0-15 hold columns 15-0"),
        (in_order([*range(8, 16), *range(8), *range(16, 40)]), "columns 0-7 hold columns 8-15, columns 8-15 hold"),
        (in_order(mixed), "even and odd of each 40 columns are halves"),
        (in_order(np.argsort(mixed)), "halves of each 40 columns alternate"),
        (changed(slice(20, 30), 0), "partly written: rows 20-29 are 0"),
        (changed((slice(None), slice(4, 8)), 0), "channels 4-7 of 40 are 0 in every row"),
        (lambda a: np.ldexp(np.round(np.frexp(a)[0] * 8) / 8, np.frexp(a)[1]), "the result is rounded to"),
    ):
        words, _, said = explained(change)
        check(len(words) > 0 and want in words[0], f"{want}: {words} {said}")
    words, _, said = explained(lambda a: a + np.random.default_rng(9).standard_normal(a.shape))
    check(said[0] == 1 and not words, f"an error without a pattern is called {words}")
    square = A.ROUND["bf16"](np.random.default_rng(4).standard_normal((24, 24)))
    words, _, said = explained(lambda a: a.T, square)
    check(len(words) > 0 and "transposed" in words[0], f"transposed: {words} {said}")


def test_alternatives():
    """What the replay tried is judged by its numbers, not by its order, and said by its row of the table."""
    r = np.random.default_rng(8)
    wrong, other = (A.bf16(r.standard_normal((30, 40))) for _ in range(2))
    line = lambda what, is_="", due="": {"what": what, "is": is_, "due": due}
    tried = [(line("activation", "relu", "silu"), other), (line("bias", "bias"), wrong)]
    words, _, said = explained(lambda a: wrong, more=dict(alternatives=tried, tried=9))
    check(words == ["bias missing"], f"an alternative: {words} {said}")
    words, _, said = explained(lambda a: wrong, more=dict(alternatives=tried[:1]))
    check(not words, f"an alternative that leaves the error: {words} {said}")
    words, _, said = explained(lambda a: wrong, more=dict(alternatives=[(line("later"), wrong)]))
    check(said[0] == 1 and not words, f"a word of a later recorder: {words} {said}")
    hostile = dict(
        alternatives=[(line("bias", "b\x1b[1m\nverdict"), wrong)],
        projections=[dict(line("activation", "\x1b[1m", "\n"), share=1, error=0.1)],
    )
    words, notes, said = explained(lambda a: wrong, more=hostile)
    check(len(words) == 1 and not any(k < " " for k in words[0]), f"hostile texts: {words} {said}")
    for bad in ([(line(""), wrong)], [({"what": "bias", "is": 3, "due": ""}, wrong)], [(line("bias"), wrong[:3])],
                [(line("bias"), wrong)] * 17):
        _, _, said = explained(lambda a: wrong, more=dict(alternatives=bad))
        check(said[0] == 2 and "/replay/results[0]" in said[1], f"a bad alternative: {said}")
    for share, error, shown in ((0.97, 0.05, True), (0.1, 0.05, False), (0.9, 0.3, False), (-1.0, 0.05, False)):
        one = [dict(line("activation", "gelu_tanh", "gelu"), share=share, error=error)]
        _, notes, said = explained(lambda a: a, more=dict(projections=one))
        found = [n for n in notes if n.startswith("below the limit: M1: the activation is gelu_tanh, not gelu")]
        check(said[0] == 0 and bool(found) == shown, f"a share of {share} +- {error}: {notes} {said}")
    _, _, said = explained(lambda a: a, more=dict(projections=[dict(line("activation"), share=1, error=0)]))
    check(said[0] == 2, f"a share without an error: {said}")


TESTS = [test_floors, test_right, test_wrong, test_faded, test_choices, test_settings, test_bad, test_hostile]
for test in [*TESTS, test_names, test_alternatives, test_inputs, test_batch, test_plan, test_next]:
    test()
shutil.rmtree(HERE)
sys.exit(f"{len(failures)} failures" if failures else 0)
