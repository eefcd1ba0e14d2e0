"""parity_follow.py VERNIER: healthy runs of transformers in every division of calls, against a reference that follows
each of them (`vernier capture ref --like`): chunks, decoded tokens, padding on either side, packed prompts, a cache
that was filled before the recording, few checkpoints. The reference has the same steps, rows and names, and all are
within their limits. A mistake made in the model is found in each of them.
"""

import os
import subprocess
import sys
import tempfile

import h5py

try:
    import torch
    import transformers
except ImportError:
    print("skipped: no torch or transformers")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = next(p for p in (os.path.dirname(HERE), os.path.dirname(os.path.dirname(HERE)))
            if os.path.isdir(os.path.join(p, "fixtures")))
FIXTURES = os.path.join(ROOT, "fixtures")
sys.path.insert(0, os.path.join(ROOT, "capture", "python"))
import vernier_parity as vp  # noqa: E402

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
vernier = os.path.abspath(sys.argv[1])
with open(os.path.join(FIXTURES, "prompts", "p070.ids"), encoding="utf-8") as text:
    A = [int(i) for i in text.read().split(",")][:40]
B, PAD = A[7:30], 17
PLACES = [*range(len(A)), *range(len(B))]
bad = runs = 0


def say(good, what):
    global bad, runs
    runs += 1
    bad += not good
    print("ok  " if good else "BAD ", what)


def contents(path, row=None):
    """Of each step: position, tokens, rows, and the names outside the states that a packed prompt lacks."""
    steps = []
    with h5py.File(path, "r") as f:
        for i in range(sum(k.startswith("step.") for k in f)):
            names, g = set(), f[f"step.{i}"]
            g.visititems(lambda name, o: names.add(name) if isinstance(o, h5py.Dataset) else None)
            at = () if row is not None else tuple(int(g.attrs.get(k, -1)) for k in ("position", "tokens"))
            steps.append((at, {n for n in names if row is None or not n.endswith("_state")}))
    return steps


def verdict(*args):
    r = subprocess.run([vernier, *args], capture_output=True, text=True)
    return r.returncode, (r.stdout.strip().splitlines() or [r.stderr.strip()])[-1]


def judge(what, model, path, row=None, wrong=False):
    """Within its limits, or with a mistake outside."""
    chosen = [] if row is None else ["--batch-row", str(row)]
    made = subprocess.run([vernier, "capture", "ref", model, "--like", path, *chosen, "-o", "ref.h5", "--force"],
                          capture_output=True, text=True)
    if made.returncode:
        say(False, f"{what}: {made.stderr.strip()}")
        return
    status, said = verdict("compare", "ref.h5", path, *chosen, "--model", model)
    same = contents("ref.h5", row) == contents(path, row)
    say(same and status == int(wrong), f"{what}: {'' if same else 'other steps or names; '}{said}")


# ---- runs ----------------------------------------------------------------------------------------


def tensor(ids):
    return torch.tensor(ids if isinstance(ids[0], list) else [ids])


def chunks(m, path, **how):
    with vp.record(m, path, force=True, **how):
        cache = m(tensor(A[:16]), use_cache=True).past_key_values
        m(tensor(A[16:35]), past_key_values=cache)
        for i in A[35:]:
            m(tensor([i]), past_key_values=cache)


def filled(m, path):
    cache = m(tensor(A[:16]), use_cache=True).past_key_values
    with vp.record(m, path, force=True, before=A[:16]):
        m(tensor(A[16:35]), past_key_values=cache)
        m(tensor(A[35:36]), past_key_values=cache)


def refused(m):
    """A filled cache of which nothing, or something else, is said."""
    for before, says in ((None, "before= gives the tokens"),
                         (A[:15], "15 tokens in 1 rows, and the cache holds 16 in 1")):
        cache = m(tensor(A[:16]), use_cache=True).past_key_values
        try:
            with vp.record(m, "refused.h5", force=True, before=before):
                m(tensor(A[16:35]), past_key_values=cache)
            say(False, f"a filled cache, before={before}")
        except vp.RecordingError as e:
            say(says in str(e), f"a filled cache: {e}")


def padded(m, path, left):
    a, mask = [0] * PAD, [0] * PAD
    row, shown = (a + B, mask + [1] * len(B)) if left else (B + a, [1] * len(B) + mask)
    mask = tensor([[1] * len(A), shown])
    with vp.record(m, path, force=True):
        m(tensor([A, row]), attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp(min=0))


def packed(m, path):
    with vp.record(m, path, force=True):
        m(tensor(A + B), position_ids=tensor(PLACES), use_cache=False)


class Apart:
    """Runs convolution and delta rule of Qwen3.5 for each packed prompt alone, as kernels with the prompts' lengths do;
    transformers' own functions run over their ends. The states of all prompts are stacked."""

    def __init__(self, m):
        self.source = sys.modules[type(m).__module__]
        self.names = [n for n in ("causal_conv1d_fn", "torch_chunk_gated_delta_rule") if hasattr(self.source, n)]

    def __enter__(self):
        self.before = [getattr(self.source, n) for n in self.names]
        self.l2norm = getattr(self.source, "l2norm", None)
        for name, f in zip(self.names, self.before):
            setattr(self.source, name, self.convolution(f) if "conv" in name else self.rule(f))

    def __exit__(self, *_):
        for name, f in zip(self.names, self.before):
            setattr(self.source, name, f)

    @staticmethod
    def convolution(f):
        def run(x, *args, **kwargs):
            return torch.cat([f(part, *args, **kwargs) for part in (x[..., :len(A)], x[..., len(A):])], -1)
        return run

    def rule(self, f):
        def run(q, k, v, g=None, beta=None, **kwargs):
            seen = getattr(self.source, "l2norm", None)
            if seen:  # a kernel normalises inside
                self.source.l2norm = self.l2norm
            parts = [f(*(t[:, s] for t in (q, k, v)), g=g[:, s], beta=beta[:, s], **kwargs)
                     for s in (slice(0, len(A)), slice(len(A), None))]
            if seen:
                self.source.l2norm = seen
            states = None if parts[0][1] is None else torch.cat([p[1] for p in parts])
            return torch.cat([p[0] for p in parts], 1), states
        return run


def runs_of(family, model, m, wrong):
    """Every run of a model, recorded and judged. wrong: the model has a mistake."""
    kind = "wrong" if wrong else "healthy"

    def of(what):
        return f"{family} {kind} {what}"

    chunks(m, "run.h5")
    judge(of("chunks"), model, "run.h5", wrong=wrong)
    few = wrong and family != "qwen2"  # the mistake is the same
    for what, how in (("logits", dict(points="logits")), ("outputs", dict(points=["layer*.output", "logits"])),
                      ("last row", dict(tokens="last")))[few * 2:]:
        chunks(m, "run.h5", **how)
        judge(of(f"chunks, {what}"), model, "run.h5", wrong=wrong)
    filled(m, "run.h5")
    judge(of("filled cache"), model, "run.h5", wrong=wrong)
    for left in (True, False):
        padded(m, "run.h5", left)
        for row in (0, 1)[few:]:
            judge(of(f"padded {'left' if left else 'right'} {row}"), model, "run.h5", row, wrong)
    packed(m, "run.h5")
    judge(of("packed 0"), model, "run.h5", 0, wrong)
    if family == "qwen3_5_text":  # transformers' own functions let the second prompt see the first
        judge(of("packed 1, run over its beginning"), model, "run.h5", 1, True)
        with Apart(m):
            packed(m, "run.h5")
        judge(of("packed apart 0"), model, "run.h5", 0, wrong)
    judge(of("packed apart 1"), model, "run.h5", 1, wrong)


with tempfile.TemporaryDirectory() as work, torch.no_grad():
    os.chdir(work)
    for family in ("qwen2", "qwen3_5_text"):
        model = os.path.join(FIXTURES, f"{family}-trained")
        m = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
        runs_of(family, model, m, False)
        refused(m)
        norm = m.model.layers[0].input_layernorm
        name = "eps" if hasattr(norm, "eps") else "variance_epsilon"
        setattr(norm, name, 1e-2)
        runs_of(family, model, m, True)
    os.chdir(HERE)
print(f"{runs} runs, {bad} bad")
sys.exit(bad > 0)
