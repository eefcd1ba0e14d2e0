#!/usr/bin/env python3
"""parity_mtp_outside.py: mistakes made in transformers' parts of a multi-token-prediction head, judged by vernier.

    parity_mtp_outside.py VERNIER

Needs a Python with torch and transformers (77, skipped, without). Runs the trained head of fixtures/mtp as it is, which
`vernier compare` must call within limits, and with each mistake, of which `explain` must name the first origin. And a
dump under the names of the weights' file (mtp.fc, mtp.layers.0...), whose checkpoints `import --like` must find.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from needs_transformers import golden, torch, transformers  # first: it finds what is in fixtures/
import captures
import prediction_head
from parity_hf import FIXTURES

RIGHT = prediction_head.run
IDS = "@" + os.path.join(FIXTURES, "prompts", "p070.ids")


def rows(model, ids, before=lambda final, last: torch.cat([torch.zeros_like(final[:, :1]), final[:, :-1]], 1), first=1,
         moved=0):
    """prediction_head.run with another hidden state, mask or position."""
    last, T = [], ids.shape[1]
    hook = model.model.norm.register_forward_pre_hook(lambda m, a: last.append(a[0]))
    final = model.model(input_ids=ids, use_cache=False).last_hidden_state
    hook.remove()
    model.lm_head(final)
    x, at = model.model.embed_tokens(ids), torch.arange(T)[None]
    may = torch.ones(T, T).tril().bool() if first == 0 else prediction_head.visible(T)
    mask = torch.zeros(1, 1, T, T, dtype=final.dtype).masked_fill(~may, torch.finfo(final.dtype).min)
    turned = prediction_head.rotary(model, x, at + moved)
    out = model.mtp.layer(x, before(final, last[0]), position_embeddings=turned, attention_mask=mask, position_ids=at,
                          past_key_values=None)
    return final, model.mtp.scores(out)


def swapped(model):
    layer = model.mtp.layer
    layer.enorm, layer.hnorm = layer.hnorm, layer.enorm


def copied(to, of):
    with torch.no_grad():
        to.weight.copy_(of.weight)


def softmax(scores=lambda s: s, more=0.0):
    """A change of the head's attention: f of its scores, and a number beside the sum of exponentials."""
    def change(model):
        source = sys.modules[type(model).__module__]
        usual = source.eager_attention_forward

        def attention(module, query, key, value, attention_mask, scaling, **rest):
            if module is not model.mtp.layer.mtp_block.self_attn:
                return usual(module, query, key, value, attention_mask, scaling=scaling, **rest)
            each = lambda t: t.repeat_interleave(query.shape[1] // t.shape[1], 1)
            e = torch.exp(scores(query @ each(key).transpose(2, 3) * scaling) + attention_mask)
            w = e / (more + e.sum(-1, keepdim=True))
            return (w @ each(value)).transpose(1, 2).contiguous(), w

        source.eager_attention_forward = attention
    return change


def scored(f):
    return lambda model: model.mtp.scores.register_forward_hook(lambda module, given, made: f(made))


late = lambda x: torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)
# name: ids that may be named, a change of the model, other arguments of rows
MISTAKES = {
    "right": ((), None, {}),
    "hidden state first": (("T1",), lambda m: setattr(m.mtp.layer.config, "mtp_hidden_states_first", True), {}),
    "before the final norm": (("T2",), None, {"before": lambda final, last: late(last)}),
    "tokens not shifted": (("T3",), None, {"before": lambda final, last: final}),
    "norms exchanged": (("T4",), swapped, {}),
    "the model's last norm": (("T5",), lambda m: copied(m.mtp.layer.post_norm, m.model.norm), {}),
    "the first token is seen": (("T6",), None, {"first": 0}),
    "positions from 1": (("R3.plus", "R3b.q", "R3b.k"), None, {"moved": 1}),
    "keys of the last layer": (("W9.before",), lambda m: copied(m.mtp.layer.mtp_block.self_attn.k_proj,
                                                               m.model.layers[-1].self_attn.k_proj), {}),
    # with neither is the first key seen
    "a sink": (("A22",), softmax(more=3.7), {}),
    "a cap of scores": (("scores capped: 10 tanh(score / 10)",), softmax(lambda s: 10 * torch.tanh(s / 10)), {}),
    "a temperature": (("M9",), scored(lambda x: x / 0.7), {}),
    "a cap of drafts": (("M9",), scored(lambda x: 30 * torch.tanh(x / 30)), {}),
}


def record(model, directory, how, path):
    _, change, more = MISTAKES[how]
    golden.load = lambda *a: model
    if change:
        change(model)
    prediction_head.run = lambda m, ids: rows(m, ids, **more)
    golden.record(directory, IDS, "f32", path, provenance="trained")


def dump(vernier, d):
    """Whether import --like gives every output of the head's modules, and the inputs of some, its checkpoint."""
    m, out, at = golden.load(d, "f32"), {}, lambda name: os.path.join(d, name)
    names = {x: prediction_head.in_file(n + ".")[:-1] for n, x in m.mtp.layer.named_modules() if n}
    names[m.mtp.scores] = "mtp.lm_head"
    last, due = len(m.model.layers), {}
    for module, name in names.items():
        module.register_forward_hook(lambda _, given, made, name=name: out.update({
            name: (made[0] if isinstance(made, tuple) else made).numpy(),
            **{name + ".in": x.numpy() for x in given[:1]}}))
    for checkpoint, module, what in prediction_head.hooks(f"layer{last}.", m.mtp):
        due[names[module] + (".in" if what == "in" else "")] = checkpoint
    for part in "q_proj:qg_proj k_proj v_proj q_norm k_norm o_proj:attn_out".split():
        due[f"mtp.layers.0.self_attn.{part.split(':')[0]}"] = f"layer{last}.{part.split(':')[-1]}"
    ids = torch.tensor([golden.read_ids(IDS)])
    with torch.no_grad():
        prediction_head.run(m, ids)
    np.savez(at("dump.npz"), **out)
    done = subprocess.run([vernier, "import", at("dump.npz"), "--like", at("r.h5"), "--model", d, "--mtp", "--ids", IDS,
                           "--write-map", at("map.yaml"), "-o", at("d.h5"), "--force"], capture_output=True, text=True)
    with open(at("map.yaml"), encoding="utf-8") as f:
        found = dict(re.findall(r'from: "(mtp[^"]*)", to: "([^"]*)"', f.read()))
    wrong = {n: found.get(n) for n, c in due.items() if c != found.get(n)}
    status = subprocess.run([vernier, "compare", at("r.h5"), at("d.h5"), "--model", d, "--allow", "missing,weights"],
                            capture_output=True, text=True).returncode
    good = not done.returncode and not wrong and not status and set(out) == set(found)
    print(f"a dump of {len(out)} tensors: {len(due)} looked up, wrong {wrong or 'none'}; "
          f"{'within' if status == 0 else 'outside'} limits{'' if good else '   FAILED ' + done.stderr}")
    return good


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    vernier, good, load = sys.argv[1], True, golden.load
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    # a wrong head does not pass the checks of a golden
    captures.check_scores = lambda *a: None
    prediction_head.check = lambda model, kept: kept.pop("ids")
    with tempfile.TemporaryDirectory() as d:
        at = lambda name: os.path.join(d, name)
        prediction_head.whole(os.path.join(FIXTURES, "qwen3_5_text-trained"), os.path.join(FIXTURES, "mtp"), d)
        subprocess.run([vernier, "capture", "ref", d, "--ids", IDS, "--points", "*", "-o", at("r.h5")], check=True,
                       capture_output=True)
        good &= dump(vernier, d)
        for how, (ids, _, more) in MISTAKES.items():
            model = load(d, "f32")
            record(model, d, how, at("c.h5"))
            done = subprocess.run([vernier, "explain", at("r.h5"), at("c.h5"), "--model", d, "--allow", "weights",
                                   "--allow", "missing", "--format", "json"], capture_output=True, text=True)
            said = json.loads(done.stdout) if done.returncode < 2 else {}
            named = [a["id"] or a["words"] for e in said.get("explanations", [])[:1] for a in e["answers"]]
            right = (done.returncode == 0) if not ids else bool(named) and named[0] in ids
            print(f"{how}: {'within limits' if done.returncode == 0 else ', '.join(named) or done.stderr.strip()}"
                  f"{'' if right else '   FAILED'}")
            good &= right
            os.remove(at("c.h5"))
    print("1 passed, 0 failed" if good else "0 passed, 1 failed")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
