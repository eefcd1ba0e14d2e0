"""any_model.py: recordings of a small model that vernier has no plan of, and replay files for them, made with numpy:
what vernier_parity writes of a PyTorch module (vernier help checkpoint.md), without PyTorch.

A graph is a list of nodes in execution order. run() computes it in a format; replay() computes each node from what a
candidate recorded, in float32 and in the candidate's format."""

import json, os, sys

import h5py
import numpy as np
import xxhash

T, D, E, K = 24, 32, 8, 3  # tokens, width, experts, experts chosen


def bf16(x):
    """Rounded to bfloat16, ties to even."""
    x = np.asarray(x, np.float32)
    bits = np.atleast_1d(x).view(np.uint32).astype(np.uint64)
    bits = (bits + np.uint64(0x7FFF) + ((bits >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000)
    return np.where(np.isnan(x), np.float32(np.nan), bits.astype(np.uint32).view(np.float32).reshape(x.shape))


ROUND = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": lambda x: np.asarray(x, np.float16).astype(np.float32),
    "bf16": bf16,
}


class Node:
    """One operation: fn(*inputs) gives a list of results. reads: names, or (name, steps back)."""

    def __init__(self, path, op, reads, fn, out=None, names=None, module=True):
        self.path, self.op, self.reads, self.fn, self.module = path, op, reads, fn, module
        self.out = names or [out or path]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def top(x, order):
    ids = np.argsort(-x, -1, kind="stable")[:, :K]
    ids = ids if order == "score" else np.sort(ids, -1)
    return np.take_along_axis(x, ids, -1), ids.astype(np.int32)


def model(layers=2, scale=0.25, order="score", scale_first=False, seed=1, norm_chosen=False):
    """The graph, and variants of it: another scale; experts in another order; the scale in front of the product;
    weights of the chosen experts that sum to 1 (a mistake)."""
    r = np.random.default_rng(seed)
    w = lambda *s: bf16(r.standard_normal(s) / np.sqrt(s[0])).astype(np.float64)
    g = [Node("model.embed", "Embedding", ["in.input_ids"], (lambda table: lambda i: [table[i]])(w(97, D) * 5))]
    x = "model.embed"
    for n in range(layers):
        p = f"model.layers.{n}."
        proj, gate, experts, s = w(D, D), w(D, E), w(E, D, D), scale
        rms = lambda a: [a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-6)]

        def router(a, gate=gate):
            scores = softmax(a @ gate)
            weights, ids = top(scores, order)
            return [scores, weights / weights.sum(-1, keepdims=True) if norm_chosen else weights, ids]

        def mixture(a, weights, ids, experts=experts):
            return [np.einsum("tk,tkd->td", weights, np.einsum("td,tkde->tke", a, experts[ids]))]

        g.append(Node(p + "norm", "RMSNorm", [x], rms))
        if scale_first:
            g += [
                Node(p[:-1], "mul", [p + "norm"], lambda a, s=s: [a * s], p + "mul.0", module=False),
                Node(p + "proj", "Linear", [p + "mul.0"], lambda a, m=proj: [a @ m]),
            ]
        else:
            g += [
                Node(p + "proj", "Linear", [p + "norm"], lambda a, m=proj: [a @ m]),
                Node(p[:-1], "mul", [p + "proj"], lambda a, s=s: [a * s], p + "mul.0", module=False),
            ]
        y = p + ("proj" if scale_first else "mul.0")
        g += [
            Node(p + "gate", "Router", [y], router, names=[p + "gate", p + "gate:1", p + "gate:2"]),
            Node(p + "experts", "Experts", [y, p + "gate:1", p + "gate:2"], mixture),
            Node(p[:-1], "add", [x, p + "experts"], lambda a, b: [a + b], p + "add.0", module=False),
        ]
        x = p + "add.0"
    g += [
        Node("lm_head", "Linear", [x], (lambda m: lambda a: [a @ m])(w(D, 97))),
        Node("", "result", ["lm_head"], lambda a: [a], "out.logits"),
    ]
    return g


def compute(node, values, fmt, step):
    got = [values[(step, r)] for r in node.reads]
    with np.errstate(all="ignore"):
        out = node.fn(*[x.astype(np.float64) if x.dtype.kind == "f" else x for x in got])
    return [ROUND[fmt](x) if x.dtype.kind == "f" else x for x in out]


def run(graph, inputs, fmt, change=None):
    """All values of a run: {(step, name): numbers}. inputs: a dict for each step. change(node, step, results)
    may return other results."""
    values = {}
    for step, given in enumerate(inputs):
        values.update({(step, "in." + k): v for k, v in given.items()})
        for n in graph:
            out = compute(n, values, fmt, step)
            out = change(n, step, out) or out if change else out
            values.update({(step, k): x for k, x in zip(n.out, out)})
    return values


def tokens(seed=0, steps=1):
    r = np.random.default_rng(seed)
    return [{"input_ids": r.integers(0, 97, T).astype(np.int32)} for _ in range(steps)]


# ---- files -------------------------------------------------------------------------------------


def stored(x, fmt):
    """Numbers as a file stores them, and their attribute dtype."""
    x = np.asarray(x)
    if x.dtype.kind != "f":
        return x.astype("<i4"), "i32"
    if fmt == "bf16":
        return (x.astype(np.float32).view(np.uint32) >> 16).astype("<u2"), "bf16"
    return x.astype({"f16": "<f2", "f32": "<f4", "f64": "<f8"}[fmt]), fmt


def put(group, name, x, fmt, **more):
    data, dtype = stored(x, fmt)
    d = group.create_dataset(name, data=np.ascontiguousarray(data))
    d.attrs.update(dtype=dtype, digest=xxhash.xxh3_128_hexdigest(data.tobytes()), **more)
    return d.attrs["digest"]


def lines(group, name, rows):
    group.create_dataset(name, data=[json.dumps(r) for r in rows], dtype=h5py.string_dtype())


def start(f, kind):
    f.attrs.update(format=kind, format_version=1, complete=1, tool="any_model.py")


def record(path, graph, values, fmt, names=None, **run_attributes):
    """Writes a recording of these values: all, or those of `names`, the inputs and the results."""
    steps = 1 + max(s for s, _ in values)
    listed = []
    with h5py.File(path, "w") as f:
        start(f, "vernier-checkpoint")
        f.create_group("run").attrs.update(engine="pytorch", precision=fmt, **run_attributes)
        rows = []
        for step in range(steps):
            g, order = f.create_group(f"step.{step}"), 0
            inputs = [k for s, k in values if s == step and k.startswith("in.")]
            for k in inputs + [k for n in graph for k in n.out]:
                if names is None or k in names or k.startswith(("in.", "out.")):
                    op = next((n.op for n in graph if k in n.out), "input")
                    listed.append((step, k, put(g, k, values[(step, k)], fmt, order=order, op=op)))
                    order += 1
            rows += [
                {
                    "op": n.op,
                    "path": n.path,
                    "step": step,
                    "out": n.out,
                    "in": [{"input": r} if r.startswith("in.") else {"from": r} for r in n.reads],
                }
                for n in graph
            ]
        plan = f.create_group("plan")
        plan.attrs["kind"] = "pytorch"
        lines(plan, "nodes", rows)
    return digest(listed)


def digest(listed):
    text = "".join(f"{s} {k} {d}\n" for s, k, d in sorted(listed, key=lambda r: (r[0], r[1].encode())))
    return xxhash.xxh3_128_hexdigest(text.encode())


def region_of(graph, name, given):
    """The nodes before the one that makes `name` whose results are not given, and what they read: their names."""
    maker = {k: n for n in graph for k in n.out}
    region, reads, todo = [], [], [maker[name]]
    seen = {id(todo[0])}
    while todo:
        for r in todo.pop().reads:
            if r in given or r.startswith("in."):
                reads += [r] if r not in reads else []
            elif id(maker[r]) not in seen:
                seen.add(id(maker[r]))
                region += maker[r].out
                todo.append(maker[r])
    return region, reads


def expected(graph, node, name, given, values, fmt, step):
    """What node `node` gives from the given values: whatever else it needs is computed."""
    known = {(s, k): v for (s, k), v in values.items() if s == step and (k in given or k.startswith("in."))}
    region, _ = region_of(graph, name, given)
    for n in graph:
        if n is not node and any(k in region for k in n.out):
            known.update({(step, k): x for k, x in zip(n.out, compute(n, known, fmt, step))})
    return dict(zip(node.out, compute(node, known, fmt, step)))[name]


def replay(path, graph, values, fmt, sides, names=None, removed=(), unjudged=(), settings=(), **other):
    """Writes the replay file of a candidate's values. sides: the digests of candidate and reference. removed: wrong
    results of a first round, which are computed in the second."""
    steps = 1 + max(s for s, _ in values)
    fine = "f64" if fmt == "f32" else "f32"
    all_names = [k for n in graph for k in n.out]
    given = {k for k in all_names if names is None or k in names or k.startswith("out.")}
    skip = {k for k in unjudged}
    rows = []
    with h5py.File(path, "w") as f:
        start(f, "vernier-replayed")
        attributes = dict(candidate=sides[0], reference=sides[1], format=fmt, tool="any_model.py")
        attributes.update(other)
        f.create_group("run").attrs.update(attributes)
        for step in range(steps):
            g = f.create_group(f"step.{step}")
            for i, n in enumerate(graph):
                for k in n.out:
                    if k not in given or k in skip:
                        continue
                    own = given - set(n.out)
                    region, reads = region_of(graph, k, own)
                    part = g.create_group(k)
                    put(part, "expected", expected(graph, n, k, own, values, fine, step), fine)
                    put(part, "floor", expected(graph, n, k, own, values, fmt, step), fmt)
                    whole = values[(step, k)].dtype.kind != "f"
                    row = dict(
                        step=step,
                        name=k,
                        node=step * len(graph) + i,
                        op=n.op,
                        region=region,
                        reads=reads,
                        kind="choice" if whole and n.op == "Router" else "ids" if whole else "numbers",
                        extra=[],
                        modules=[n.path],
                    )
                    if row["kind"] == "choice":
                        row["scores"] = n.out[1]
                    if removed and (k not in removed or k.startswith("out.")):
                        left = own - set(removed)
                        again, _ = region_of(graph, k, left)
                        if again != region:
                            put(part, "again", expected(graph, n, k, left, values, fine, step), fine)
                            put(part, "again_floor", expected(graph, n, k, left, values, fmt, step), fmt)
                            row["again_region"] = again
                    rows.append(row)
        r = f.create_group("replay")
        lines(r, "results", rows)
        lines(r, "unjudged", [dict(step=0, name=k, why="other shape") for k in unjudged])
        lines(r, "settings", settings)
