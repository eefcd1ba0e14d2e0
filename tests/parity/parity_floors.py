"""parity_floors.py VERNIER [NAME...]: rules of limits that were once too simple, each with healthy runs of torch that
were called outside, and faults that were not.

ranks: products of which each of 2, 4 or 8 ranks has a part, rounded to 16 bits and added up in them.
norms: of numbers whose squares overflow in float32.
steps: faults of a few floors in steps of one token, which begin in some step.
first: the first divergence, where a limit on all steps together is broken by a fault in the later ones.
"""
import re
import shutil
import sys
import tempfile

import h5py
import parity_partial
import record_help
from needs_transformers import torch, transformers
from parity_partial import TEXT
from record_help import BF16, F16, F32, Bench, load, model_of


class Floors(Bench):
    def recorded(self, model, ids, n=0, **more):
        """Record a prompt, and decode n tokens."""
        with torch.no_grad(), record_help.record(model, self.at("cand.h5"), **more):
            if n:
                model.generate(torch.tensor([ids]), max_new_tokens=n, min_new_tokens=n, do_sample=False, pad_token_id=0)
            else:
                model(torch.tensor([ids]))

    def facts(self, **more):
        with h5py.File(self.at("cand.h5"), "r+") as f:
            f["run"].attrs.update(more)

    def judged(self, path, *more, forced=False):
        steps = ("--force-ids-from", self.at("cand.h5")) if forced else ()
        done = self.vernier("capture", "ref", path, "--ids-from", self.at("cand.h5"), *steps, "--force", "-o",
                            self.at("ref.h5"))
        if done.returncode:
            raise RuntimeError(done.stderr)
        return self.compare(self.at("ref.h5"), self.at("cand.h5"), "--model", path, *more)

    def origins(self, report):
        return [report["checkpoints"][i]["name"] if isinstance(i, int) else i for i in report.get("origins", [])]

    def healthy(self, what, judged):
        status, report = judged
        worst = max((c["replay"]["local_over_floor"] for c in report.get("checkpoints", []) if c.get("replay")),
                    default=0)
        self.say(f"{what}, healthy", status == 0 and not self.origins(report),
                 f"worst operation {worst:.2f} floors; {report['summary']}")

    def faulty(self, what, judged, at):
        status, report = judged
        found = self.origins(report)
        self.say(f"{what}, fault", status == 1 and at in found, f"origins {' '.join(found[:4])}; {report['summary']}")


# ---- ranks

def in_parts(linear, ranks, broken=0.0):
    """Give a product the sum of the ranks' parts. broken: the second rank's part is too large by this share."""
    def forward(x):
        total = None
        for r, (a, w) in enumerate(zip(x.chunk(ranks, -1), linear.weight.chunk(ranks, 1))):
            part = torch.nn.functional.linear(a.float(), w.float())
            part = (part * (1 + broken) if r == 1 else part).to(x.dtype)
            total = part if total is None else total + part
        return total if linear.bias is None else total + linear.bias
    linear.forward = forward


def ranks(b):
    for family, dtype, n in (("llama", F16, 2), ("llama", F16, 4), ("llama", F16, 8), ("qwen2", F16, 8),
                             ("qwen2", BF16, 4), ("mistral", BF16, 8), ("qwen3_5_text", F16, 4)):
        for points in (None, "logits"):
            model = load(family, dtype)
            for name, m in model.named_modules():
                if name.endswith(("o_proj", "down_proj", "out_proj")):
                    in_parts(m, n)
            b.recorded(model, TEXT[300:363], points=points)
            b.facts(world_size=n)
            b.healthy(f"ranks: {family}, {dtype}, {n}, {points or 'all'}",
                      b.judged(model_of(family), "--allow", "ranks", "--allow", "missing"))
    model = load("llama", F16)
    in_parts(model.model.layers[1].mlp.down_proj, 8, 0.02)
    b.recorded(model, TEXT[300:363])
    b.facts(world_size=8)
    b.faulty("ranks: llama, 8", b.judged(model_of("llama"), "--allow", "ranks"), "layer1.down_proj")


# ---- norms whose sum of squares overflows in float32: the factor is 0, in transformers too

def changed(b, family, change):
    """A model directory with changed weights."""
    path = b.at(family + "-changed")
    shutil.copytree(model_of(family), path, dirs_exist_ok=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=F32)
    with torch.no_grad():
        change(model)
    model.save_pretrained(path)
    return path


def large_values(model):
    mixer = model.model.layers[0].linear_attn
    mixer.in_proj_qkv.weight[2 * mixer.key_dim:] *= 3e21


def large_embedding(model):
    model.model.embed_tokens.weight[TEXT[310]] *= 1e22


def norms(b):
    for family, change, at in (("qwen3_5_text", large_values, "gated_norm"), ("llama", large_embedding, "attn_norm")):
        path = changed(b, family, change)
        for dtype in (F32, BF16):
            model = parity_partial.load(path, dtype)
            b.recorded(model, TEXT[300:340])
            b.healthy(f"norms: {family}, {dtype}", b.judged(path))
        model = parity_partial.load(path, F32)
        parity_partial.set_eps(3000, slice(None))(model)
        b.recorded(model, TEXT[300:340])
        status, report = b.judged(path)
        b.say(f"norms: {family}, another eps", status == 1 and any("norm" in o for o in b.origins(report)),
              " ".join(b.origins(report)))


# ---- steps of one token

FLOOR = {F16: 4.3e-8, BF16: 2.75e-6}


class From:
    """Counts the calls of a model, and says whether a fault has begun."""

    def __init__(self, model, first):
        self.calls, self.first = -1, first
        model.register_forward_pre_hook(self.count, with_kwargs=True)

    def count(self, *_):
        self.calls += 1

    def begun(self):
        return self.calls >= self.first


def scaled(module, since, by):
    """A product whose result is too large by this share, in calls since one of them."""
    def forward(x):
        y = torch.nn.functional.linear(x.float(), module.weight.float())
        return (y * (1 + by) if since.begun() else y).to(x.dtype)
    module.forward = forward


def first_step(report):
    name = report["first_divergence"] or ""
    found = re.match(r"step\.(\d+)/", name)
    return int(found[1]) if found else 0 if name else -1


def steps(b):
    for family, dtype in (("llama", F16), ("qwen2", BF16), ("mistral", F16), ("qwen3", BF16), ("llama", F32)):
        path = model_of(family)
        for attention in ("eager", "sdpa"):
            b.recorded(load(family, dtype, attention), TEXT[200:224], 24)
            b.healthy(f"steps: {family}, {dtype}, {attention}", b.judged(path, forced=True))
        for floors, first in ((4.6, 1), (7, 1), (14, 1), (7, 9), (14, 9), (20, 20), (40, 9)):
            if dtype is F32:
                continue
            model = load(family, dtype)
            scaled(model.model.layers[1].mlp.down_proj, From(model, first), (floors * FLOOR[dtype]) ** 0.5)
            b.recorded(model, TEXT[200:224], 24)
            status, report = b.judged(path, forced=True)
            found = b.origins(report)
            at = first_step(report)
            b.say(f"steps: {family}, {dtype}, {floors} floors from step {first}",
                  status == 1 and found and all("layer1.down_proj" in x for x in found) and at >= first,
                  f"first in step {at}; origins {' '.join(found[:4])} ({len(found)}); {report['summary']}")


def offset(module, since, by):
    """Adds a share of the mean size to every number of a product."""
    def forward(x):
        y = torch.nn.functional.linear(x.float(), module.weight.float())
        return (y + by * y.abs().mean() if since.begun() else y).to(x.dtype)
    module.forward = forward


def first(b):
    """The first divergence is not before the fault."""
    for points in ({}, {"points": ["logits", "layer0.output", "layer1.output"]}):
        for fault, by in ((offset, 0.01), (offset, 0.1), (scaled, 0.03)):
            model = load("llama", F16)
            fault(model.model.layers[1].mlp.down_proj, From(model, 12), by)
            b.recorded(model, TEXT[200:224], 24, **points)
            status, report = b.judged(model_of("llama"), "--allow", "missing", forced=True)
            b.say(f"first: {fault.__name__} by {by} from step 12{', some points' if points else ''}",
                  status == 1 and first_step(report) == 12, f"{report['first_divergence']}; {report['summary']}")


CASES = {"ranks": ranks, "norms": norms, "steps": steps, "first": first}


def main():
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        b = Floors(sys.argv[1], folder)
        for name in sys.argv[2:] or CASES:
            CASES[name](b)
        print(f"{b.good} passed, {b.bad} failed")
    sys.exit(b.bad != 0)


if __name__ == "__main__":
    main()
