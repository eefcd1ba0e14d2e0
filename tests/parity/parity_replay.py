#!/usr/bin/env python3
"""parity_replay.py VERNIER [--short|PART...]: does a replay name the operations that are at fault, and no others?

Candidates: an engine without code of vernier (unrelated_run.py) that makes known mistakes, recordings of other engines
(fixtures/foreign), and vernier's own. Prints a table: how many cases, in how many the origins are exactly the
operations at fault, how many operations that are not at fault were accused, and the largest local error of an operation
that is not at fault, in multiples of its floor. Exit status 1 when one case is wrong. Parts are functions below,
"captures" say; spans and two_faults need single_faults. --short: of many cases of one kind, every sixteenth; of every
family, one precision of the GPU.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
try:
    import editing as h5py
    import numpy as np
    import unrelated_run
except ImportError as e:
    print(f"parity_replay.py: no {e.name}; skipped")
    sys.exit(77)

FIXTURES = unrelated_run.FIXTURES
FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen3_5_text")
STORES = {"f16": "<f2", "f32": "<f4"}
IDS = unrelated_run.prompt("p070")
LIMITS = os.path.join(FIXTURES, "..", "specs", "limits", "fp16-acc32.yaml")
CALLS = [58] + [1] * 12
rng = random.Random(5)


def model_of(family):
    return os.path.join(FIXTURES, family + "-trained")


def ids(list_):
    return ",".join(map(str, list_))


def in_sample(n):
    """Is case n, counted from 0, in the sample of a sixteenth? Multiples of the golden ratio have no period, so all
    values of nested loops are sampled alike."""
    return n * 0.6180339887498949 % 1 < 0.0625


class Bench:
    def __init__(self, vernier, folder, short):
        self.short, self.wanted = short, {} # how many cases of each kind there were
        self.vernier, self.folder, self.jobs, self.rows, self.bad = os.path.abspath(vernier), folder, [], [], 0

    def at(self, name):
        return os.path.join(self.folder, name)

    def capture(self, out, *args):
        if not os.path.exists(self.at(out)):
            subprocess.run([self.vernier, "capture", *args, "-o", self.at(out)], check=True, stderr=subprocess.DEVNULL)
        return self.at(out)

    def reference(self, family, calls=None, precision="f32"):
        """The reference's run of IDS, in one call or in several."""
        more = ["--force-ids", ids(IDS[calls[0] :])] if calls else []
        return self.capture(f"{family}.{precision}.{'steps' if calls else 'prompt'}.h5", "ref", model_of(family),
                            "--ids",
                            ids(IDS[: calls[0]] if calls else IDS), "--precision", precision, "--points", "*", *more)

    def wants(self, kind):
        """Asked for each of many cases of a kind, before it is made."""
        self.wanted[kind] = self.wanted.get(kind, 0) + 1
        return not self.short or in_sample(self.wanted[kind] - 1)

    def ask(self, group, what, family, ref, cand, expected, *args):
        """expected: the origins, or a function of the report that says what is wrong with it."""
        self.jobs.append((group, what, family, ref, cand, expected, args))

    def one(self, job):
        group, what, family, ref, cand, expected, args = job
        run = subprocess.run([self.vernier, "compare", ref, cand, "--model", model_of(family), "--replay", "--allow",
                              "missing",
                              "--threads", "1", "--format", "json", *args], capture_output=True, text=True, check=False)
        if run.returncode > 1:
            return group, what, run.stderr, 0, 0.0
        report = json.loads(run.stdout)
        found = [(f"step.{o['step']}/" if isinstance(o, dict) and o["step"] else "") + o["checkpoint"]
                 if isinstance(o, dict) else o for o in report["origins"]]
        if callable(expected):
            wrong, accused = expected(report, found)
        else:
            wrong = "" if sorted(found) == sorted(expected) else f"{found}, not {expected}"
            accused = len(set(found) - set(expected))
        most = max((local(c) for c in report["checkpoints"] if "replay" in c and not c["replay"]["operation_wrong"]),
                   default=0.0)
        return group, what, wrong, accused, most

    def finish(self):
        with ThreadPoolExecutor(2) as pool:
            done = list(pool.map(self.one, self.jobs))
        print(f"{'':44} cases  right  accused  largest of the others")
        for group in dict.fromkeys(j[0] for j in self.jobs):
            of = [d for d in done if d[0] == group]
            print(f"{group:44} {len(of):5}  {sum(not d[2] for d in of):5}  {sum(d[3] for d in of):7}  "
                  f"{max(d[4] for d in of):.2f}")
        wrong = [d for d in done if d[2]]
        for group, what, why, *_ in wrong:
            print(f"WRONG {group}: {what}: {why}")
        return len(wrong)


def local(c):
    """The largest of what a limit of the replay speaks of."""
    r = c["replay"]
    return max(r["local_over_floor"] or 0, r["worst_token_over_floor"] or 0, (r["max_abs_over_floor"] or 0) ** 2)


# ---- the unrelated engine's ----------------------------------------------------------------------


def visible(unmodified, faulty, name):
    """A fault can only be found where it makes a difference: a bias of zeros may be left out."""
    a, b = unmodified[name][0].astype("f8"), faulty[name][0].astype("f8")
    return ((a - b) ** 2).sum() > 1e-4 * (a**2).sum()


def names_of(family, layer):
    for point, kinds in unrelated_run.FAULTS.items():
        if family == "qwen2" and point.endswith(("q_norm", "k_norm")):
            continue
        if point in ("embed", "final_norm", "logits"):
            if layer == 1:
                yield point, kinds
        else:
            yield f"layer{layer}.{point}", kinds


def single_faults(b):
    b.faults = {}
    for family in ("qwen2", "qwen3"):
        ref = b.reference(family)
        for precision, store in STORES.items():
            unmodified = unrelated_run.engine(model_of(family), IDS, {}, store)
            cand = b.at(f"{family}.{precision}.unmodified.h5")
            unrelated_run.write(cand, model_of(family), IDS, unmodified, precision)
            b.ask("unmodified, an unrelated engine's f16 and f32", f"{family} {precision}", family, ref, cand, [])
            for layer in (0, 1):
                every = (family == "qwen3") == (precision == "f16")
                for name, kinds in names_of(family, layer) if every or layer == 0 else ():
                    for kind in kinds[:2] if layer else kinds[:1]:  # all of them: parity_explain_unrelated.py
                        r = unrelated_run.engine(model_of(family), IDS, {name: kind}, store)
                        if not visible(unmodified, r, name):
                            continue
                        b.faults.setdefault(family, {})[name, kind] = 1
                        if not b.wants("single"):
                            continue
                        cand = b.at(f"{family}.{precision}.{name}.{kind}.h5")
                        unrelated_run.write(cand, model_of(family), IDS, r, precision)
                        b.ask(f"one fault, {precision}", f"{family} {name} {kind}", family, ref, cand, [name])


def two_faults(b):
    for n in range(32):
        family, precision = rng.choice(("qwen2", "qwen3")), rng.choice(("f16", "f32"))
        (one, how), (two, also) = rng.sample(sorted(b.faults[family]), 2)
        if one == two or not b.wants("two"):
            continue
        r = unrelated_run.engine(model_of(family), IDS, {one: how, two: also}, STORES[precision])
        cand = b.at(f"two.{n}.h5")
        unrelated_run.write(cand, model_of(family), IDS, r, precision)
        b.ask("two faults", f"{family} {precision} {one} {how}, {two} {also}", family, b.reference(family), cand,
              [one, two])


# ---- what was captured --------------------------------------------------------------------------

SUBSETS = {
    "layer outputs": r"output$|^embed$|^logits$",
    "no norms of heads": r"^(?!.*(q_norm|k_norm)$)",
    "attention alone": r"attn_|^embed$",
    "residual streams": r"residual$|output$|^embed$|^final_norm$|^logits$",
    "no residual streams": r"^(?!.*(residual|output|embed)$)",
    "feed-forward alone": r"mlp_|gate_|up_|down_|output$",
    "logits alone": r"^logits$",
}


def inputs_of(family, name):
    """What is computed from a checkpoint, by its names."""
    layer, _, point = name.rpartition(".")
    n = int(layer[5:]) if layer else 0
    norms, behind = family == "qwen3", f"layer{n + 1}" if n == 0 else None
    stream = [f"{behind}.attn_norm", f"{behind}.attn_residual"] if behind else ["final_norm"]
    at = lambda *points: [f"{layer}.{p}" for p in points]
    return {
        "embed": ["layer0.attn_norm", "layer0.attn_residual"], "attn_norm": at("q_proj", "k_proj", "v_proj"),
        "q_proj": at("q_norm" if norms else "q_rope"), "k_proj": at("k_norm" if norms else "k_rope"),
        "v_proj": at("attn_context"),
        "q_norm": at("q_rope"), "k_norm": at("k_rope"), "q_rope": at("attn_context"), "k_rope": at("attn_context"),
        "attn_context": at("attn_out"), "attn_out": at("attn_residual"), "attn_residual": at("mlp_norm", "output"),
        "mlp_norm": at("gate_proj", "up_proj"), "gate_proj": at("mlp_act"), "up_proj": at("mlp_act"),
        "mlp_act": at("down_proj"),
        "down_proj": at("output"), "output": stream, "final_norm": ["logits"], "logits": [],
    }[point or name]


def ends_of(family, name, kept):
    """The captured checkpoints whose span contains this one."""
    if name in kept:
        return {name}
    return set().union(*(ends_of(family, n, kept) for n in inputs_of(family, name)))


def spans(b):
    for family in ("qwen2", "qwen3"):
        for title, pattern in SUBSETS.items():
            for name, kind in rng.sample(sorted(b.faults[family]), 6):
                if not b.wants("spans"):
                    continue
                r = unrelated_run.engine(model_of(family), IDS, {name: kind}, "<f2")
                kept = {n: x for n, x in r.items() if re.search(pattern, n)}
                ends = ends_of(family, name, kept)
                if not ends:
                    continue
                first = next(n for n in kept if n in ends)
                if not visible(unrelated_run.engine(model_of(family), IDS, {}, "<f2"), r, first):
                    continue
                cand = b.at(f"{family}.span.{title}.{name}.{kind}.h5")
                unrelated_run.write(cand, model_of(family), IDS, kept, "f16")
                b.ask("one fault, not everything captured", f"{family} {title}: {name} {kind}", family,
                      b.reference(family), cand, [first])
        for name, kind in rng.sample(sorted(b.faults[family]), 10):
            if not b.wants("last"):
                continue
            r = unrelated_run.engine(model_of(family), IDS, {name: kind}, "<f2")
            unmodified = unrelated_run.engine(model_of(family), IDS, {}, "<f2")
            if np.array_equal(r["logits"][0][-1], unmodified["logits"][0][-1]):
                continue
            good, bad = (x[name][0][-1].astype("f8") for x in (unmodified, r))
            same = np.array_equal(good, bad)
            if not same and ((good - bad) ** 2).sum() < 1e-3 * (good**2).sum():
                continue # the error of one row is too small
            cand = b.at(f"{family}.last.{name}.{kind}.h5")
            unrelated_run.write(cand, model_of(family), IDS, r, "f16", rows=1)
            # Where the last row is right, it shows where the other rows are read: at the attention.
            b.ask("one fault, the last token alone captured", f"{family} {name} {kind}", family, b.reference(family),
                  cand,
                  [name] if not same else ends_at_attention(name))


def ends_at_attention(name):
    layer, _, point = name.rpartition(".")
    here = point in ("attn_norm", "k_proj", "v_proj", "k_norm", "k_rope") # a row of queries is read for that row alone
    return [f"{layer if here else 'layer1'}.attn_context"]


def decoding(b):
    family, model = "qwen2", model_of("qwen2")
    for precision, store in STORES.items():
        unmodified = unrelated_run.engine(model, IDS, {}, store)
        cand = b.at(f"steps.{precision}.h5")
        unrelated_run.write(cand, model, IDS, unmodified, precision, CALLS)
        b.ask("unmodified, decoding", precision, family, b.reference(family, CALLS), cand, [])
        for name, kind in (("layer1.k_rope", "position + 1"), ("layer0.attn_context", "no scale"),
                           ("layer1.v_proj", "scaled"), ("layer0.down_proj", "scaled")):
            since = 64
            r = unrelated_run.engine(model, IDS, {name: kind}, store, since=since)
            cand = b.at(f"steps.{precision}.{name}.{kind}.h5")
            unrelated_run.write(cand, model, IDS, r, precision, CALLS)
            b.ask("one fault, from decoding step 7 on", f"{precision} {name} {kind}", family,
                  b.reference(family, CALLS), cand,
                  [f"step.{s}/{name}" for s in range(since - 57, 13)])


def precisions(b):
    """A precision that vernier does not know counts as the format of the tensors, and the report says so."""
    model, family = model_of("qwen2"), "qwen2"

    def noted(names):
        def check(report, found):
            note = any("f16, the format of its tensors, is used" in n for n in report["notes"])
            return ("" if found == names and note else f"{found}, not {names}; notes {report['notes']}",
                    len(set(found) - set(names)))
        return check
    for name in (None, "layer0.q_rope", "layer1.mlp_norm"):
        r = unrelated_run.engine(model, IDS, {name: unrelated_run.FAULTS[name.split(".")[1]][0]} if name else {}, "<f2")
        cand = b.at(f"precision.{name}.h5")
        unrelated_run.write(cand, model, IDS, r, "mixed, as we do")
        names = [name] if name else []
        b.ask("a precision of its own", str(name), family, b.reference(family), cand, noted(names), "--limits", LIMITS)
        b.ask("a precision of its own", f"{name}, --floor-precision", family, b.reference(family), cand, names,
              "--floor-precision", "f16", "--limits", LIMITS)


# ---- wrong captures -----------------------------------------------------------------------------


def edited(path, to, change, step="step.0"):
    with open(path, "rb") as a, open(to, "wb") as f:
        f.write(a.read())
    with h5py.File(to, "r+") as f:
        change(f[step])
    return to


def are_captured(*names, besides=()):
    """The origins are these, and it is their capture that is wrong; and others that are at fault."""
    def check(report, found):
        wrong = sorted(c["name"] for c in report["checkpoints"] if c.get("replay", {}).get("recorder_fault"))
        expected = {*names, *besides}
        told = "" if set(found) == expected else f"{found}, not {sorted(expected)}"
        return (told or ("" if wrong == sorted(names) else f"known for wrong captures: {wrong}"),
                len(set(found) - expected))
    return check


def captures(b):
    model, family = model_of("qwen2"), "qwen2"
    r = unrelated_run.engine(model, IDS, {}, "<f2")
    for to, source in (("final_norm", "layer1.output"), ("layer0.attn_residual", "layer0.attn_out"),
                       ("layer1.attn_out", "layer0.attn_out"),
                       ("layer0.q_rope", "layer0.q_proj"), ("layer1.mlp_norm", "layer1.attn_norm"),
                       ("layer1.k_rope", "layer0.k_rope"),
                       ("layer0.gate_proj", "layer1.up_proj"), ("layer0.output", "layer0.attn_residual"),
                       ("layer1.attn_norm", "layer0.attn_norm")):
        wrong = dict(r)
        wrong[to] = (r[source][0], r[to][1])
        cand = b.at(f"captured.{to}.h5")
        unrelated_run.write(cand, model, IDS, wrong, "f16")
        b.ask("another tensor in its place", f"{to} is {source}", family, b.reference(family), cand, are_captured(to))


ONE_EARLY = {"q_rope": "q_proj", "k_rope": "k_proj"}
MEET = (
    ONE_EARLY, {"gate_proj": "up_proj", "up_proj": "gate_proj"}, {"attn_out": "mlp_norm", "input": "attn_norm"},
    {"attn_residual": "attn_out", "down_proj": "mlp_norm"},
    {**ONE_EARLY, "v_proj": "k_proj"}, {"q_proj": "no bias", "k_proj": "no bias", "v_proj": "no bias"},
    {"q_proj": "no bias", "q_rope": "q_proj"},
    {"attn_residual": "attn_out", "mlp_norm": "attn_residual"},
    {"attn_residual": "attn_out", "mlp_norm": "attn_residual", "gate_proj": "up_proj"},
    {"attn_norm": "mlp_norm", "v_proj": "k_proj", "k_rope": "k_proj"},
    {**ONE_EARLY, "v_proj": "k_proj", "attn_out": "attn_norm", "gate_proj": "up_proj", "down_proj": "attn_out"},
)
MEET_GDN = (
    {"gdn_q": "gdn_q_conv", "gdn_k": "gdn_k_conv"}, {"gdn_g": "gdn_a", "gdn_beta": "gdn_b"},
    {"gdn_k": "gdn_k_conv", "gdn_v": "gdn_core", "gdn_beta": "gdn_b"},
    {"gdn_q": "gdn_q_conv", "gdn_k": "gdn_k_conv", "gdn_v": "gdn_core", "gdn_g": "gdn_a", "gdn_beta": "gdn_b"},
)


def captures_that_meet(b):
    """Several in front of one operation, and one in front of another: no reader is right on its captured inputs."""
    for family in ("qwen2", "qwen3"):
        model = model_of(family)
        r = unrelated_run.engine(model, IDS, {}, "<f2")
        stream = {"layer0.input": "embed", "layer1.input": "layer0.output"}
        for n, meet in enumerate(MEET):
            for layer in ("layer0.", "layer1.")[n % 2 :][:1]:
                wrong = dict(r)
                for to, source in meet.items():
                    if source == "no bias" and family == "qwen3":
                        break
                    name = stream.get(layer + to, layer + to)
                    source = unrelated_run.engine(model, IDS, {name: source},
                                                  "<f2")[name] if source == "no bias" else r[layer + source]
                    wrong[name] = (source[0], r[name][1])
                else:
                    cand = b.at(f"meet.{family}.{n}.h5")
                    unrelated_run.write(cand, model, IDS, wrong, "f16")
                    b.ask("wrong captures that meet", f"{family} {layer}{meet}", family, b.reference(family), cand,
                          are_captured(*(stream.get(layer + to, layer + to) for to in meet)))
    family, layer = "qwen3_5_text", "layer1"
    own = b.reference(family, CALLS, "f16")
    for n, meet in enumerate(MEET_GDN):
        def change(step, meet=meet):
            new = {to: step[f"{layer}/{source}"][()] for to, source in meet.items()}
            for to, x in new.items():
                step[f"{layer}/{to}"][...] = x
        b.ask("wrong captures that meet, the delta rule", str(meet), family, b.reference(family, CALLS),
              edited(own, b.at(f"meet.gdn.{n}.h5"), change), are_captured(*(f"{layer}.{to}" for to in meet)))


def captures_and_faults(b):
    """A wrong capture, and another input or the reader itself that is at fault: none is taken for the other."""
    for family in ("qwen2", "qwen3"):
        model = model_of(family)
        for faulty, kind, captured in (
            ("layer1.q_rope", "left out", {"k_rope": "k_proj"}),
            ("layer0.k_rope", "position + 1", {"q_rope": "q_proj", "v_proj": "k_proj"}),
            ("layer1.attn_context", "no scale", ONE_EARLY), ("layer0.gate_proj", "scaled", {"up_proj": "gate_proj"}),
            ("layer1.mlp_act", "gelu", {"up_proj": "gate_proj", "gate_proj": "up_proj"}),
            ("layer1.mlp_norm", "no weight", {"attn_residual": "attn_out"}),
        ):
            layer = faulty[:7]
            r = unrelated_run.engine(model, IDS, {faulty: kind}, "<f2")
            wrong = dict(r)
            for to, source in captured.items():
                wrong[layer + to] = (r[layer + source][0], r[layer + to][1])
            cand = b.at(f"meet.{family}.{faulty}.h5")
            unrelated_run.write(cand, model, IDS, wrong, "f16")
            # If the reading operation is at fault, its inputs cannot be judged.
            reader = faulty.endswith(("context", "act"))
            names = [layer + to for to in captured]
            b.ask("wrong captures beside a fault", f"{family} {faulty} {kind}, {captured}", family, b.reference(family),
                  cand,
                  are_captured(besides=[faulty, *names]) if reader else are_captured(*names, besides=[faulty]))


def small_edits(b):
    """What nmse alone does not see: a token of seventy, a channel, a head, an element."""
    model, family = model_of("qwen3"), "qwen3"
    r = unrelated_run.engine(model, IDS, {}, "<f2")

    def element(x):
        x[33].flat[5] += 0.2 * x.std()

    def token(x):
        x[17] *= 1.02

    def channel(x):
        x.reshape(len(x), -1)[:, 3] *= 1.03

    def head(x):
        x[:, 1] *= 1.01

    for name in ("layer0.attn_norm", "layer1.q_rope", "layer0.k_rope", "layer1.attn_context", "layer1.mlp_act",
                 "layer0.output"):
        for change in (element, token, channel, head):
            x = r[name][0].astype("f8")
            if (change is head and x.ndim < 3) or not b.wants(f"small edits, {change.__name__}"):
                continue
            change(x)
            wrong = dict(r)
            wrong[name] = (x.astype("<f2"), r[name][1])
            cand = b.at(f"small.{name}.{change.__name__}.h5")
            unrelated_run.write(cand, model, IDS, wrong, "f16")
            b.ask("small edits: an element, token, channel, head", f"{name} {change.__name__}", family,
                  b.reference(family), cand,
                  are_captured(name))


def foreign(b):
    small = unrelated_run.prompt("p017")
    for family in FAMILIES:
        ref = b.capture(f"{family}.p017.h5", "ref", model_of(family), "--ids", ids(small), "--points", "*")
        theirs = os.path.join(FIXTURES, "foreign", f"hf-{family}.h5")
        b.ask("unmodified, transformers' modules", family, family, ref, theirs, [], "--names", "hf")
        gpt2 = family == "gpt2"
        name, point = ("transformer.h.1.mlp.c_fc",
                       "layer1.up_proj") if gpt2 else ("model.layers.1.mlp.up_proj", "layer1.up_proj")

        def change(step, name=name):
            step[name][...] = step[name][()] * 1.02
        b.ask("edited, transformers' modules", family, family, ref, edited(theirs, b.at(f"hf.{family}.h5"), change),
              [point], "--names", "hf")


def written_scores(b):
    """Attention that keeps its scores in float16, as transformers' eager one does: that is no fault, and hides none."""
    def head(x):
        x[:, 1] *= 1.01
        return x

    for family in ("qwen2", "qwen3"):
        model, ref = model_of(family), b.reference(family)
        for name, kind in ((None, None), ("layer1.attn_context", head), ("layer1.attn_context", "scale 0.2625"),
                           ("layer0.attn_context", "scale 0.2375"),
                           ("layer0.attn_context", "window 40"), ("layer1.attn_context", "no mask")):
            cand = b.at(f"written.{family}.{name}.{getattr(kind, '__name__', kind)}.h5")
            unrelated_run.write(cand, model, IDS, unrelated_run.engine(model, IDS, {name: kind} if name else {}, "<f2",
                                                                       written=True), "f16")
            found = [name.replace("context", "probs") if isinstance(kind, str) else name] if name else []
            b.ask("scores kept in float16" + (", a fault" if name else ", unmodified"), f"{family} {name} {kind}",
                  family, ref, cand, found)


# ---- vernier's own -------------------------------------------------------------------------------


def bf16(b):
    for family in FAMILIES:
        own = b.reference(family, CALLS, "bf16")
        b.ask("unmodified, the reference in bf16", family, family, b.reference(family, CALLS), own, [])
        name = "layer1.mlp_act"

        def change(step):
            a = step[name.replace(".", "/")]
            a[20:30] = a[20:30] ^ 0x20 # a bit of 1/4 of an ulp of 8 bits
        b.ask("edited, the reference in bf16", family, family, b.reference(family, CALLS),
              edited(own, b.at(f"bf16.{family}.h5"), change), are_captured(name))


def gpu(b):
    found = subprocess.run([b.vernier, "devices"], capture_output=True, text=True, check=False)
    if found.returncode or "missing:" in found.stdout.split("\n\n")[0]:
        print("no device: runs of the GPU skipped")
        return
    for n, family in enumerate(FAMILIES):
        for precision in ("f16", "f16-acc16", "f32")[n % 3:][:1] if b.short else ("f16", "f16-acc16", "f32"):
            cand = b.capture(f"gpu.{family}.{precision}.h5", "gpu", model_of(family), "--ids", ids(IDS[: CALLS[0]]),
                             "--precision", precision,
                             "--points", "*", "--force-ids", ids(IDS[CALLS[0] :]))
            b.ask(f"unmodified, the GPU in {precision}", family, family, b.reference(family, CALLS), cand, [])


def main():
    parts = (single_faults, two_faults, spans, decoding, precisions, captures, captures_that_meet, captures_and_faults,
             small_edits, foreign, written_scores, bf16, gpu)
    short = sys.argv[2:] == ["--short"]
    asked = (not short and sys.argv[2:]) or [p.__name__ for p in parts]
    if len(sys.argv) < 2 or set(asked) - {p.__name__ for p in parts}:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder, np.errstate(over="ignore"):
        b = Bench(sys.argv[1], folder, short)
        for part in parts:
            if part.__name__ in asked:
                part(b)
        sys.exit(1 if b.finish() else 0)


if __name__ == "__main__":
    main()
