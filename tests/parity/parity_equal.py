#!/usr/bin/env python3
"""parity_equal.py VERNIER [--short | WORDS]: answers that the numbers cannot tell apart stand beside each other, and
the commands that `explain` proposes lead on. --short: every fourth mistake. WORDS: only those that they are in.

Mistakes made in transformers' modules, of which the right answer, and every other that gives the same numbers, must
stand among the answers of an origin; a name that the other calls contradict must not be the first. `next`: the
commands are run as they are printed, and the run that makes all mistakes that were named is within limits of the
candidate.
"""
import importlib
import json
import os
import shlex
import sys
import tempfile

from needs_transformers import torch, transformers

import random_model
from record_help import BF16, F16, F32, Bench, model_of, prompt, record

IDS = prompt("text")
EMPTY = "G16.calls: "
FOLLOWED = ("positions doubled", "the state is lost between calls of 64")  # by the commands that are proposed


def calls(model, cuts):
    cache, at = None, 0
    with torch.no_grad():
        for n in cuts:
            cache = model(torch.tensor([IDS[at : at + n]]), past_key_values=cache, use_cache=True).past_key_values
            at += n


def source(model):
    return importlib.import_module(type(model).__module__)


def directory(bench, family):
    """The trained model, or one of random weights, whose attention is sharper."""
    if not family.startswith("random "):
        return model_of(family)
    path = bench.at(family.replace(" ", "-"))
    if not os.path.exists(path):
        random_model.main([family.split()[1], "-o", path, "--hidden", "128", "--heads", "8", "--kv-heads", "2", "--ffn",
                           "256", "--layers", "3", "--untied", "--theta", "500000", "--seed", "3"])
        model = load(path, F32)
        with torch.no_grad():
            for layer in model.model.layers:
                for p in (layer.self_attn.q_proj, layer.self_attn.k_proj):
                    p.weight.mul_(2 / (p.weight.std() * p.weight.shape[1]**0.5))
        model.save_pretrained(path)
    return path


def load(path, dtype):
    return transformers.AutoModelForCausalLM.from_pretrained(path, dtype=dtype, attn_implementation="eager").eval()


def explained(bench, path, cand, *more):
    """(the explanations, by origin; the commands)."""
    ref = bench.at("ref.h5")
    done = bench.vernier("capture", "ref", path, "--ids-from", cand, "--force-ids-from", cand, "--force", "-o", ref)
    if done.returncode:  # it decodes nothing
        bench.vernier("capture", "ref", path, "--ids-from", cand, "--force", "-o", ref)
    done = bench.vernier("explain", ref, cand, "--model", path, "--format", "json", *more)
    report = json.loads(done.stdout)
    if "explanations" not in report:
        sys.exit(f"{done.stdout} {done.stderr}")
    return {e["checkpoint"]: e for e in report["explanations"]}, report["next"]


def answers(e):
    return [f"{a['id']}: {a['words']}" for a in e["answers"]]


def expect(bench, what, found, wanted, first=None):
    """Every word of `wanted` is in an answer of an origin; `first`, if given, in the first of all origins, which are
    explained, or of all those that it names."""
    told = {at: answers(e) for at, e in found.items() if e["explained"]}
    beside = any(all(any(w in a for a in t) for w in wanted) for t in told.values())
    glob, word = first or ("", "")
    leads = not first or all(at in told and word in told[at][0] for at in found if glob in at)
    shown = next((t for at, t in told.items() if glob in at), ["nothing"])
    bench.say(what, beside and leads, " | ".join(shown))


def follow(bench, what, commands):
    """Runs the two commands that make the mistakes again and compare."""
    made = [c for c in commands if " --inject " in c][:1] + [c for c in commands if c.startswith("vernier compare ")]
    done = None
    for c in made:
        done = bench.vernier(*shlex.split(c)[1:])
    shown = made[0].split(" --inject ", 1)[-1] if made else "no command"
    bench.say(what, len(made) == 2 and done.returncode == 0, shown)


def doubled(model):
    rotate = model.model.rotary_emb.forward
    model.model.rotary_emb.forward = lambda x, position_ids: rotate(x, position_ids * 2)
    calls(model, [60] + [1] * 4)


def lower_later(model):
    rotate = model.model.rotary_emb.forward
    model.model.rotary_emb.forward = lambda x, position_ids: rotate(x, position_ids - (position_ids >= 40).long())
    calls(model, [40, 24] + [1] * 4)


def rounded_frequencies(model):
    model.model.rotary_emb.inv_freq = model.model.rotary_emb.inv_freq.bfloat16().float()
    calls(model, [200])


def no_state(cuts):
    def make(model):
        module, name = source(model), "torch_chunk_gated_delta_rule"
        rule = getattr(module, name)
        setattr(module, name, lambda *a, **k: rule(*a, **{**k, "initial_state": None}))
        try:
            calls(model, cuts)
        finally:
            setattr(module, name, rule)
    return make


def without_bias(linear):
    linear.forward = lambda x: torch.nn.functional.linear(x, linear.weight)


def unseen(key):
    def make(model):
        module = source(model)
        attend = module.eager_attention_forward

        def masked(m, q, k, v, mask, **more):
            if q.shape[2] == 1:
                mask = torch.zeros(1, 1, 1, k.shape[2], dtype=q.dtype)
                mask[..., key] = torch.finfo(q.dtype).min
            return attend(m, q, k, v, mask, **more)
        module.eager_attention_forward = masked
        try:
            calls(model, [60] + [1] * 8)
        finally:
            module.eager_attention_forward = attend
    return make


def sink(logit):
    """One more score, without a value, in each softmax."""
    def make(model):
        module = source(model)
        attend = module.eager_attention_forward

        def with_sink(m, q, k, v, mask, scaling, **more):
            k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
            s = torch.matmul(q, k.transpose(2, 3)) * scaling + (0 if mask is None else mask[..., : k.shape[2]])
            s = torch.cat([s.float(), torch.full((*s.shape[:-1], 1), logit)], -1)
            w = torch.softmax(s, -1)[..., :-1].to(q.dtype)
            return torch.matmul(w, v).transpose(1, 2).contiguous(), w
        module.eager_attention_forward = with_sink
        try:
            calls(model, [60] + [1] * 4)
        finally:
            module.eager_attention_forward = attend
    return make


def blocks_of_16(order):
    """Keys and values are read through a table of blocks in another order."""
    def make(model):
        module = source(model)
        attend = module.eager_attention_forward
        slots = [16 * b + i for b in order for i in range(16)]
        module.eager_attention_forward = lambda m, q, k, v, *a, **more: attend(m, q, k[:, :, slots], v[:, :, slots], *a,
                                                                               **more)
        try:
            calls(model, [16 * len(order)])
        finally:
            module.eager_attention_forward = attend
    return make


def larger_values(model):
    with torch.no_grad():
        cache = model(torch.tensor([IDS[:60]]), use_cache=True).past_key_values
        for layer in cache.layers:
            update, layer.values = layer.update, layer.values * 4
            layer.update = lambda k, v, *a, u=update, **more: u(k, v * 4, *a, **more)
        for i in IDS[60:66]:
            model(torch.tensor([[i]]), past_key_values=cache, use_cache=True)


def reordered(order):
    """Rows of the weights of queries and keys, put from the order of halves into that of neighbouring pairs, or as if
    they were in it."""
    def make(model):
        config = model.config
        for layer in model.model.layers:
            a = layer.self_attn
            for linear, heads in ((a.q_proj, config.num_attention_heads), (a.k_proj, config.num_key_value_heads)):
                w = linear.weight.detach()
                half = w.shape[0] // heads // 2
                two = (2, half) if order == "pairs" else (half, 2)
                w = w.view(heads, *two, w.shape[1]).swapaxes(1, 2).reshape(w.shape)
                linear.forward = lambda x, w=w: torch.nn.functional.linear(x, w)
        calls(model, [60])
    return make


def grouped_columns(model):
    """The columns of o_proj in the order (group, key head)."""
    config = model.config
    groups, width = config.num_attention_heads // config.num_key_value_heads, config.head_dim
    for layer in model.model.layers:
        linear = layer.self_attn.o_proj
        w = linear.weight.detach()
        w = w.view(len(w), config.num_key_value_heads, groups, width).transpose(1, 2).reshape(w.shape)
        linear.forward = lambda x, w=w: torch.nn.functional.linear(x, w)
    calls(model, [60])


EQUAL = [  # what; family; format; how; words among the answers of one origin; (origins, words of their first answers)
    ("positions doubled", "llama", F16, doubled, ("R10: ", "R5: every angle is 2 times"), ("", "R10: ")),
    ("positions lower after a call", "llama", F32, lower_later, ("R3b.last: ",), ("step.", "R3b.last: ")),
    ("rows permuted for RoPE", "llama", F32, reordered("pairs"), ("R1b: ",), ("", "R1b: ")),
    ("rows un-permuted for RoPE", "llama", F16, reordered("halves"), ("R1b.back: ",), ("", "R1b.back: ")),
    ("heads of the output in another order", "random llama", F32, grouped_columns,
     ("A18: heads, or ranks of a head each",), ("", "A18: ")),
    ("frequencies in bfloat16", "random qwen3", BF16, rounded_frequencies, ("R13: ",), ("", "R13: ")),
    ("the state is lost between calls of 64", "qwen3_5_text", F32, no_state([64, 64, 36]), ("G16: ", EMPTY), None),
    ("the state is lost between calls of 100 and 60", "qwen3_5_text", BF16, no_state([100, 60]), (EMPTY,), ("", EMPTY)),
    ("key 0 is masked in decoding", "random llama", F16, unseen(0), ("A23: calls after the first", "C1.before: "),
     ("step.1/layer0", "A23: calls after the first")),
    ("a sink with the logit 1, f32", "llama", F32, sink(1.0), ("attention sink: one extra score, 1,",),
     ("", "attention sink")),
    ("a sink with the logit 2, f16", "random qwen3", F16, sink(2.0), ("attention sink: one extra score, 2,",),
     ("layer0", "attention sink")),
    ("a sink with the logit 1.5, bf16", "llama", BF16, sink(1.5), ("attention sink: one extra score, 1.5,",), None),
    ("a table of blocks, f16", "random qwen3", F16, blocks_of_16([2, 0, 1, 4, 3]), ("C4: ",), ("", "C4: ")),
    ("a table of blocks, bf16", "random llama", BF16, blocks_of_16([0, 3, 1, 2, 4]), ("C4: ",), ("", "C4: ")),
    ("values 4 times as large", "random llama", F16, larger_values, ("every element is multiplied by 4",),
     ("", "every element is multiplied by 4")),
]


def main():
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    short = only == "--short"
    only = "" if short else only
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(sys.argv[1], folder)
        os.chdir(folder)
        cand = bench.at("cand.h5")
        for what, family, dtype, make, wanted, first in (
                e for i, e in enumerate(EQUAL) if not short or i % 4 == 0 or e[0] in FOLLOWED):
            path = directory(bench, family)
            if only and only not in what:
                continue
            model = load(path, dtype)
            with record(model, cand):
                make(model)
            found, commands = explained(bench, path, cand)
            expect(bench, what, found, wanted, first)
            if what in FOLLOWED:
                follow(bench, f"{what}: next", commands)
            if what.startswith("rows "):
                said = bench.vernier("compare", bench.at("ref.h5"), cand, "--model", path).stdout
                bench.say(f"{what}: nobody is told to declare the order", "declare this order" not in said)

        if only:
            return 1 if bench.bad else 0

        # Several operations, of which only the logits were recorded; several mistakes.
        qwen2 = model_of("qwen2")
        model = load(qwen2, F32)
        for layer in model.model.layers:
            for p in (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj):
                without_bias(p)
        with record(model, cand, points="logits"):
            calls(model, [48])
        follow(bench, "biases dropped in all layers: next", explained(bench, qwen2, cand, "--allow", "missing")[1])
        model = load(qwen2, F32)
        without_bias(model.model.layers[0].self_attn.v_proj)
        model.model.layers[1].self_attn.scaling **= 2
        with record(model, cand):
            calls(model, [48])
        found, commands = explained(bench, qwen2, cand)
        expect(bench, "two mistakes", found, ("W6: ",))
        follow(bench, "two mistakes: next", commands)
    print(f"{bench.good} right, {bench.bad} wrong")
    return 1 if bench.bad else 0


if __name__ == "__main__":
    sys.exit(main())
