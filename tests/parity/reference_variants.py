"""reference_variants.py: the ways in which transformers runs a model, all of them correct, as data.

A way is a row of WAYS: the attention it loads the model with, how it calls the model, and what else is set. watched()
runs a model in one way while it is recorded, and returns what is to be judged: the row of the batch or None, its
prompt, and the tokens that were decoded behind it.
"""
import contextlib
import types

import torch

STEPS = 8


def way(attention, call, formats=("f32", "f16", "bf16", "f64"), autocast=None, threads=1):
    return types.SimpleNamespace(attention=attention, call=call, formats=formats, autocast=autocast, threads=threads)


# In float64, eager attention of transformers makes NaN of a row that is masked wholly, as padding
# on the left is: its mask's number is below what the float32 of its softmax holds.
NOT_F64 = ("f32", "f16", "bf16")
WAYS = {
    "eager": way("eager", "whole"), "sdpa": way("sdpa", "whole"), "flex": way("flex_attention", "whole", NOT_F64),
    "threads": way("sdpa", "whole", threads=2), "chunks": way("sdpa", "chunks"), "eager chunks": way("eager", "chunks"),
    "steps": way("sdpa", "steps"), "eager steps": way("eager", "steps"),
    "padded": way("eager", "padded", NOT_F64), "sdpa padded": way("sdpa", "padded"),
    "padded steps": way("sdpa", "padded steps"),
    "padded right": way("eager", "padded right"), "generate": way("sdpa", "generate"),
    "generate padded": way("eager", "generate padded", NOT_F64),
    "static": way("sdpa", "static"), "static padded": way("eager", "static padded", NOT_F64),
    "autocast bf16": way("sdpa", "whole", ("f32",), torch.bfloat16),
    "autocast f16": way("sdpa", "whole", ("f32",), torch.float16),
    "autocast bf16 steps": way("eager", "steps", ("f32",), torch.bfloat16),
}


def in_calls(model, ids, cuts, mask=None):
    """Forward passes of the given numbers of tokens."""
    cache, at = None, 0
    for n in cuts:
        more = {} if mask is None else {"attention_mask": mask[:, : at + n],
                                        "position_ids": (mask.cumsum(-1) - 1).clamp(min=0)[:, at : at + n]}
        cache = model(torch.tensor([row[at : at + n] for row in ids]), past_key_values=cache, use_cache=True,
                      **more).past_key_values
        at += n


def generated(model, ids, mask, **more):
    out = model.generate(torch.tensor(ids), attention_mask=mask, max_new_tokens=STEPS + 1, do_sample=False,
                         eos_token_id=None, pad_token_id=0, **more)
    return out[:, len(ids[0]) : -1].tolist()


def call(model, how, ids):
    """The forward passes of a recording. Of a batch, the shorter row is judged: it is the padded one."""
    rows = [ids, ids[: 2 * len(ids) // 3]]
    lacks = [[0] * (len(ids) - len(r)) for r in rows]
    mask = torch.tensor([z + [1] * len(r) for z, r in zip(lacks, rows)])
    padded, cut = [z + r for z, r in zip(lacks, rows)], len(ids) - STEPS
    if how == "padded right":
        model(torch.tensor([r + z for z, r in zip(lacks, rows)]), attention_mask=mask.flip(-1))
        return 1, rows[1], []
    if how in ("padded", "padded steps"):
        cuts = [len(ids)] if how == "padded" else [cut] + [1] * STEPS
        in_calls(model, padded, cuts, mask)
        prompt = len(rows[1]) - len(cuts) + 1
        return 1, rows[1][:prompt], rows[1][prompt:]
    if how in ("whole", "chunks", "steps"):
        cuts = {"whole": [len(ids)], "chunks": [len(ids) // 2, len(ids) - len(ids) // 2],
                "steps": [cut] + [1] * STEPS}[how]
        in_calls(model, [ids], cuts)
        return (None, ids[:cut], ids[cut:]) if how == "steps" else (None, ids, [])
    more = {"cache_implementation": "static", "disable_compile": True} if how.startswith("static") else {}
    if how.endswith("padded"):
        return 1, rows[1], generated(model, padded, mask, **more)[1]
    return None, ids, generated(model, [ids], torch.ones(1, len(ids), dtype=torch.long), **more)[0]


def watched(model, w, ids, record, path):
    """The run of a way, recorded."""
    before = torch.get_num_threads()
    torch.set_num_threads(w.threads)
    try:
        with torch.no_grad(), record(model, path, points="*"), contextlib.ExitStack() as inside:
            if w.autocast:
                inside.enter_context(torch.autocast("cpu", dtype=w.autocast))
            return call(model, w.call, ids)
    finally:
        torch.set_num_threads(before)
