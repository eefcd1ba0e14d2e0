"""parity_any.py VERNIER [--all] [--only WORD]... [MODEL...]: recordings of any PyTorch model, judged.

Tiny random models of many architectures (any_models.py): the recorded run keeps its bits, the plan's edges give the
bits of every node, healthy candidates are right, planted mistakes (any_faults.py) are found at their place, and
called by their name or by none; another program's dumps of some tensors of right runs are within limits. Without
--all a sample of models, and of each some checks, so that each check is tried with two models or more. WORD: one of
WORDS. torch and transformers are the judge; no number is stored here.
"""

import argparse
import collections
import copy
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "capture", "python")]

import needs_transformers  # noqa: E402, F401
import torch  # noqa: E402
import transformers  # noqa: E402

import any_judge  # noqa: E402
import vernier_parity  # noqa: E402
from any_faults import FAULTS, NAMES  # noqa: E402
from any_models import MODELS, cast  # noqa: E402
from vernier_parity import replayed  # noqa: E402
from vernier_parity.candidate import Candidate  # noqa: E402
from vernier_parity.compute import differing  # noqa: E402
from vernier_parity.rerun import Models, converted  # noqa: E402
from vernier_parity.replaying import Replay  # noqa: E402
from vernier_parity.tracer import Trace, tensors  # noqa: E402

SAMPLE = ("mixtral", "gemma3", "mamba2", "loop")
FEW = ("scaled", "residual", "mask", "experts", "eps")  # faults of the sample
VARIANTS = {"bf16": ("bf16", "eager"), "bf16, other kernels": ("bf16", "nomkl"), "bf16, sdpa": ("bf16", "sdpa"),
            "f16": ("f16", "eager"), "f32": ("f32", "eager"), "f32, other kernels": ("f32", "nomkl"),
            "f32, sdpa": ("f32", "sdpa")}
SAMPLED = ("bf16, sdpa", "f32, other kernels")
WORDS = ("bits", "healthy", "faults", "generate", "program", "partial", "names")
# models whose hidden states and logits are dumped by another program, at these depths
PARTIAL = ("llama", "mistral", "qwen2", "qwen3", "qwen3_5", "gemma2", "gemma3", "phi3", "phi", "granite", "cohere2",
           "olmo2", "lfm2", "bert", "modernbert", "xlm_roberta", "mamba", "mamba2",
           "falcon_h1", "mixtral", "qwen3_moe", "deepseek_v3")
DEPTHS = (2, 3, 4, 6, 12, 24, 48)
SAMPLE_NAMES = {"mixtral": ("experts", "residual", "activation"), "bert": ("activation", "bias", "value rows"),
                "phi": ("head", "position")}
FORMATS = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def share(some, name, most):
    """`most` of some, others for each model of the sample."""
    at = SAMPLE.index(name) if name in SAMPLE else 0
    return [some[(at + i) % len(some)] for i in range(most)]


class Failures:
    def __init__(self):
        self.lines = []

    def check(self, right, text):
        if not right:
            self.lines.append(text)
            print("FAILED:", text, flush=True)


def candidate(name, dtype, attention="eager"):
    m, inputs = MODELS[name](attention)
    if attention == "eager":
        return converted(m, dtype), inputs
    made = converted(m, dtype)
    made.set_attn_implementation(attention)
    return made, inputs


def judged(name, model, inputs, folder, functions=None, how="", call=None):
    """Record model(**inputs), replay it, and return (rows of any_judge, the replay, path of the candidate). how:
    "nomkl" lets the candidate, not its replay, run with other kernels."""
    cand, rep = os.path.join(folder, "cand.h5"), os.path.join(folder, "replayed.h5")
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=how != "nomkl"), vernier_parity.record(
            model, cand, any=True, functions=functions, weights=False, force=True):
        call(model) if call else model(**inputs)
    with Candidate(cand) as c:
        r = Replay(Models(MODELS[name]()[0], c), c)
        replayed.write(r, rep, force=True)
    return any_judge.judge(cand, rep), r, cand


def bits(name, fail, folder):
    """The recorded run is the plain run; the edges of its plan give every node's bits; nothing is read that no node
    made and no weight, buffer or input is."""
    m, inputs = MODELS[name]()
    x = inputs(0)
    with torch.no_grad():
        plain = m(**x)
        with vernier_parity.record(m, os.path.join(folder, "bits.h5"), any=True, functions="all", force=True):
            recorded = m(**x)
        trace = Trace(m, keep=True)
        with trace:
            m(**x)
    same = all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(tensors(plain), tensors(recorded)))
    fail.check(same, f"{name}: the recorded run has other bits")
    bad = differing(trace)
    fail.check(not bad, f"{name}: the edges do not give the bits of {bad[:4]}")
    return f"{len(trace.nodes)} nodes"


def healthy(name, fail, folder, ways, seeds):
    """ways: (variant, functions)."""
    said = []
    for variant, functions in ways:
        word, how = VARIANTS[variant]
        try:
            m, inputs = candidate(name, FORMATS[word], "sdpa" if how == "sdpa" else "eager")
        except (ValueError, AttributeError):  # it has one attention, or none
            continue
        if how == "sdpa" and name == "gemma2":
            continue  # sdpa drops the soft cap: a real difference
        for seed in seeds:
            x = cast(inputs(seed), FORMATS[word])
            rows, r, _ = judged(name, m, x, folder, functions, how)
            wrong = [f"{q['name']} {q['ratio']:.3g} {q['differ']}" for q in rows if q["wrong"]]
            fail.check(not wrong, f"{name}, {variant}, seed {seed}, functions {functions}: {wrong[:4]}")
            fail.check(not r.settings(), f"{name}, {variant}: settings {r.settings()[:2]}")
            said.append((max((q["ratio"] for q in rows), default=0), len(rows), len(r.unjudged)))
    return f"{sum(s[1] for s in said)} results, highest {max((s[0] for s in said), default=0):.3g}, not judged " \
           f"{sum(s[2] for s in said)}"


def partial(name, fail, folder, depths, words=FORMATS):
    """Another program's dump of hidden states and logits: every operation between two of them is one span."""
    like, cand, rep = (os.path.join(folder, n) for n in ("like.h5", "cand.h5", "rep.h5"))
    worst, done = [], 0
    for depth in depths:
        right, inputs = MODELS[name](depth=depth)
        x = inputs(depth)
        with torch.no_grad(), vernier_parity.record(right, like, any=True, weights=False, force=True):
            right(**x, output_hidden_states=True)
        for i, word in enumerate(words):
            m = converted(MODELS[name](depth=depth)[0], FORMATS[word])
            if i % 2 and name not in ("gemma2", "mamba", "mamba2"):  # sdpa drops the soft cap
                m.set_attn_implementation("sdpa")
            with torch.no_grad():
                out = m(**cast(x, FORMATS[word]), output_hidden_states=True)
            states = out.hidden_states
            # None between input and logits, in one format: of a mixture, an expert may be a tie
            apart = 1 + (depth + i) % 4 if word != "bf16" or depth % 4 else len(states)
            kept = {f"out.hidden_states.{k}": states[k] for k in range(0, len(states), apart)}
            kept.update({f"out.{k}": out[k] for k in ("logits", "last_hidden_state") if k in out})
            with vernier_parity.Recorder(cand, engine="other", precision=word, token_ids=x["input_ids"],
                                         force=True) as rec:
                for k, t in kept.items():
                    rec.put(k, t, "")
            with Candidate(cand, like) as c:
                r = Replay(Models(MODELS[name](depth=depth)[0], c), c)
                replayed.write(r, rep, force=True)
            rows = any_judge.judge(cand, rep)
            wrong = [f"{q['name']} {q['ratio']:.3g}" for q in rows if q["wrong"]]
            fail.check(not wrong and len(rows) == len(kept), f"{name}, {depth} layers, {word}: {wrong[:4]}, "
                       f"{len(rows)} of {len(kept)} judged {r.unjudged[:1]}")
            worst.append(max(q["ratio"] for q in rows))
            done += 1
    return f"{done} dumps, {sum(w <= any_judge.LIMIT for w in worst)} within, highest {max(worst):.3g}"


def undecided(fail, folder):
    """Logits of a mixture of which two experts have nearly the same scores, from an engine that has them in another
    order: it chooses the other one in bfloat16. That is no fault; a wrong matrix is, in any format. Of all tokens, or
    of the last alone; behind 12 layers, more choices than can be tried, that is not judged."""
    like, cand, rep = (os.path.join(folder, n) for n in ("like.h5", "cand.h5", "rep.h5"))
    said = []
    for depth, word, wrong, kept in (*itertools.product((2,), ("bf16", "f32"), (False, True), (0, 1)),
                                     (12, "bf16", False, 1)):
        right, inputs = MODELS["mixtral"](depth=depth)
        for name, p in right.named_parameters():
            if name.endswith("gate.weight"):
                p.data[1] = p.data[0] * (1 + 1e-4)
        x = dict(inputs(0), logits_to_keep=kept)
        with torch.no_grad(), vernier_parity.record(right, like, any=True, weights=False, force=True):
            right(**x)
        m = converted(copy.deepcopy(right), FORMATS[word])
        for layer in m.model.layers:
            for p in (layer.mlp.gate.weight, *layer.mlp.experts.parameters(recurse=False)):
                p.data[[0, 1]] = p.data[[1, 0]].clone()
        if wrong:
            m.model.layers[1].self_attn.v_proj.weight.data.neg_()
        with torch.no_grad(), vernier_parity.Recorder(cand, engine="other", precision=word, force=True,
                                                      token_ids=x["input_ids"]) as rec:
            rec.put("out.logits", m(**x).logits, "")
        with Candidate(cand, like) as c:
            replayed.write(Replay(Models(copy.deepcopy(right), c), c), rep, force=True)
        rows = any_judge.judge(cand, rep)
        said.append(f"{rows[0]['ratio']:.3g} of {rows[0].get('exchanged', 0)}" if rows else "not judged")
        fail.check(bool(rows) == (depth == 2) and [q["wrong"] for q in rows] == [wrong] * len(rows),
                   f"undecided choices, {depth} layers, {word}, {'wrong' if wrong else 'right'}: {said[-1]}")
    return "undecided " + ", ".join(said)


def inside(name, at, rows):
    """Whether the node of this name is the planted place: in the module, or a leaf around it."""
    r = rows.get(name)
    if r is None:
        return False
    path = r["path"]
    return path == at or path.startswith(at + ".") or (bool(r.get("leaf")) and at.startswith(path + ".")) or any(
        str(x.get("param", "")).startswith(at + ".") for x in r["in"])


def faults(name, fail, folder, kinds, tally, functions):
    for kind in kinds:
        planted = plant(name, kind)
        if planted is None:
            continue
        at, m, x = planted
        rows, r, _ = judged(name, m, x, folder, functions)
        wrong = [q for q in rows if q["wrong"]]
        by_name = {n: row for row in r.fine.rows for n in row["out"]}
        settings = [s["name"] for s in r.settings()]
        if not wrong:
            same = all(q["ratio"] <= 1.0 for q in rows)
            found = "settings" if settings else "missed"
            found = found if found == "settings" or not same else "missed, below one floor"
        elif inside(wrong[0]["reference"], at, by_name):
            found = "the node"
        elif any(inside(n, at, by_name) for n in wrong[0]["region"]) or wrong[0]["extra"]:
            found = "in its region"
        else:
            found = "WRONG"
        fail.check(found != "WRONG", f"{name}, {kind} at {at}: first origin {wrong[0]['name'] if wrong else ''}")
        tally.setdefault(kind, {}).setdefault(found, []).append(name)


def named(path, cand, model, vernier):
    """(the words of all answers, notes of mistakes below the limit, whether something is wrong) of a candidate."""
    ref, first, second, said = (os.path.join(path, n) for n in ("ref.h5", "first.h5", "second.h5", "said.json"))
    with Candidate(cand) as c:
        r = Replay(Models(model, c), c, None, ref, True)
        replayed.write(r, first, force=True)
        compare = [vernier, "compare", ref, cand, "--format", "json", "--replayed"]
        with open(said, "w", encoding="utf-8") as f:
            status = subprocess.run([*compare, first], stdout=f, check=False).returncode
        with open(said, encoding="utf-8") as f:
            report = json.load(f)
        if status == 1 and report["origins"]:
            replayed.write(r, second, said, force=True)
            report = json.loads(subprocess.run([*compare, second, "--explain"], stdout=subprocess.PIPE,
                                               check=False).stdout)
    words = [x["words"] for e in report.get("explanations", []) for x in e["answers"]]
    return words, [n for n in report["notes"] if n.startswith("below the limit")], bool(report["origins"])


def names(name, fail, folder, kinds, tally, functions, vernier):
    """Planted mistakes are called by their name or by none; a right candidate has no name in any format."""
    cand, count = os.path.join(folder, "cand.h5"), collections.Counter()

    def judge_one(m, x):
        with torch.no_grad(), vernier_parity.record(m, cand, any=True, functions=functions, weights=False, force=True):
            m(**x)
        return named(folder, cand, MODELS[name]()[0], vernier)

    for word, dtype in FORMATS.items():
        m, inputs = candidate(name, dtype)
        words, below, wrong = judge_one(m, cast(inputs(0), dtype))
        fail.check(not words and not below, f"{name}, {word}: a right run is called {words} {below}")
    for kind in kinds:
        planted = plant(name, kind)
        if planted is None:
            continue
        words, below, wrong = judge_one(*planted[1:])
        own = [w for w in words if not re.search(NAMES[kind], w)] + [
            n for n in below if not re.search(NAMES[kind], n)]
        fail.check(not own, f"{name}, {kind} at {planted[0]}, functions {functions}: called {own[:2]}")
        found = "named" if words or below else "not named" if wrong else "no origin"
        tally.setdefault(kind, {}).setdefault(found, []).append(name)
        count[found] += 1
    return f"{functions or 'leaves'}: " + ", ".join(f"{n} {k}" for k, n in count.items())


def plant(name, kind):
    """(place, faulty candidate, its inputs); None: the fault does not fit this model, or changes nothing."""
    place, do = FAULTS[kind]
    m, inputs = candidate(name, torch.bfloat16)
    at, module = place(m)
    if module is None:
        return None
    x = cast(inputs(0), torch.bfloat16)
    try:
        with torch.no_grad():
            right = tensors(m(**x))
            do(module)
            same = all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(right, tensors(m(**x))))
    except Exception:  # it does not fit
        return None
    return None if same else (at, m, x)


def generate(name, fail, folder):
    """Four decoded tokens with a dynamic and a static cache: the same ids, right in every call."""
    said = []
    for cache in (dict(), dict(cache_implementation="static", disable_compile=True)):
        m, inputs = candidate(name, torch.bfloat16)
        x = {k: v for k, v in cast(inputs(0), torch.bfloat16).items() if "decoder" not in k}
        if not getattr(m, "can_generate", lambda: False)():
            return ""
        m.generation_config.eos_token_id = None
        how = dict(max_new_tokens=4, min_new_tokens=4, do_sample=False, pad_token_id=0, **cache)
        try:
            plain = m.generate(**x, **how)
        except Exception:  # the model has no such cache
            continue
        got = []
        rows, r, _ = judged(name, m, x, folder, call=lambda m: got.append(m.generate(**x, **how)))
        fail.check(torch.equal(plain, got[0]), f"{name}: generate: other ids")
        wrong = [f"step {q['step']} {q['name']} {q['ratio']:.3g}" for q in rows if q["wrong"]]
        fail.check(not wrong, f"{name}, generate {cache}: {wrong[:4]}")
        fail.check(len(rows) > len(r.unjudged), f"{name}, generate {cache}: not judged {r.unjudged[:2]}")
        said.append(f"{r.cand.steps} steps, {len(rows)} results, not judged {len(r.unjudged)}")
    return "; ".join(said)


def program(name, fail, folder, vernier):
    """`explain` ends with the verdict of `vernier compare`: 0 for a right candidate, 1 and the place for a wrong
    one."""
    if not isinstance(MODELS[name]()[0], transformers.PreTrainedModel):
        return ""
    path = os.path.join(folder, "model")
    MODELS[name]()[0].save_pretrained(path)
    # round two clears a factor that a norm undoes; some models have no product of values alone
    place, do = next(FAULTS[kind] for kind in ("value rows", "head", "scaled")
                     if FAULTS[kind][0](MODELS[name]()[0])[1] is not None)
    said = []
    for wrong in (False, True):
        m, inputs = candidate(name, torch.bfloat16)
        at, module = place(m)
        if wrong:
            do(module)
        cand, report = os.path.join(folder, "cand.h5"), os.path.join(folder, f"report{int(wrong)}.txt")
        with torch.no_grad(), vernier_parity.record(m, cand, any=True, force=True):
            m(**cast(inputs(0), torch.bfloat16))
        status = vernier_parity.explain(path, cand, report, program=vernier)
        fail.check(status == int(wrong), f"{name}: explain of a {'wrong' if wrong else 'right'} candidate: {status}")
        if wrong and status == 1:
            with open(report, encoding="utf-8") as f:
                text = f.read()
            fail.check(at in text, f"{name}: the report does not name {at}")
            shown = f"\nreference  {path}  (" in text and f"by a replay of {path}" in text and "/again.h5" not in text
            fail.check(shown, f"{name}: the report does not name {path}, but files that are gone")
        said.append(status)
    return f"explain: {said}"


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("vernier", help="the program")
    args.add_argument("--all", action="store_true")
    args.add_argument("--only", action="append", choices=WORDS)
    args.add_argument("model", nargs="*")
    o = args.parse_intermixed_args()
    torch.set_num_threads(1)
    fail, tally, tally_leaves, named_all, named_leaves, start = Failures(), {}, {}, {}, {}, time.time()
    words = o.only or WORDS
    for name in o.model or (MODELS if o.all else [*SAMPLE, *(n for n in SAMPLE_NAMES if n not in SAMPLE)]):
        try:
            MODELS[name]()
        except (ImportError, ValueError) as e:
            print(f"{name}: skipped: {e}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            for word in words:
                t = time.time()
                try:
                    if not o.all and not o.model and name not in SAMPLE and word != "names":
                        continue
                    if word == "bits":
                        said = bits(name, fail, folder)
                    elif word == "healthy":
                        ways = [(v, f) for v in (VARIANTS if o.all else SAMPLED) for f in (None, "all")]
                        said = healthy(name, fail, folder, ways if o.all else share(ways, name, 2),
                                       (0, 1, 2) if o.all else (0,))
                    elif word == "program":
                        half = not o.all and not o.model and name in SAMPLE[1::2]
                        said = "" if half else program(name, fail, folder, os.path.abspath(o.vernier))
                    elif word == "partial":
                        wanted = name in PARTIAL and (o.all or o.model or name == "gemma3")
                        said = partial(name, fail, folder, DEPTHS if o.all else DEPTHS[1:2]) if wanted else ""
                        said += undecided(fail, folder) if name == "mixtral" else ""
                    elif word == "generate":
                        said = generate(name, fail, folder)
                    elif word == "names":
                        kinds = FAULTS if o.all or o.model else SAMPLE_NAMES.get(name, ())
                        said = "; ".join(
                            names(name, fail, folder, kinds, tally, functions, os.path.abspath(o.vernier))
                            for functions, tally in ((("all", named_all),) if o.all else ()) + (
                                ((None, named_leaves),) if kinds else ()))
                    else:
                        faults(name, fail, folder, FAULTS if o.all else share(FEW, name, 2), tally, "all")
                        faults(name, fail, folder, FAULTS if o.all else share(FEW[:2], name, 1), tally_leaves, None)
                        said = ""
                except Exception as e:
                    traceback.print_exc()
                    fail.check(False, f"{name}: {word}: {type(e).__name__}: {str(e)[:200]}")
                    said = ""
                if said:
                    print(f"{name:20}{word:10}{said} ({time.time() - t:.1f} s)", flush=True)
    for what, t in (("functions and leaves", named_all), ("leaves alone", named_leaves)):
        for kind, found in t.items():
            print(f"named, {what}: {kind:12}", json.dumps({k: len(v) for k, v in found.items()}),
                  *(f"{k}: {', '.join(v)};" for k, v in found.items() if k != "named"))
    for what, t in (("functions and leaves", tally), ("leaves alone", tally_leaves)):
        for kind, found in t.items():
            print(f"{what}: {kind:12}", json.dumps({k: len(v) for k, v in found.items()}),
                  *(f"{k}: {', '.join(v)};" for k, v in found.items() if k.startswith("missed")))
    print(f"{len(fail.lines)} failed, {time.time() - start:.0f} s")
    return 1 if fail.lines else 0


if __name__ == "__main__":
    sys.exit(main())
