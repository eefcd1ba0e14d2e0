#!/usr/bin/env python3
"""parity_record.py VERNIER [--short|FAMILY...]: vernier_parity.record() around HuggingFace transformers, against
`vernier capture ref`.

Of every trained family, or of those named (77, skipped, in a Python without torch and transformers); --short: each of
these but the first for one family:

  plain      float32, eager and sdpa attention, every point: all there, `vernier compare` says within fp32.yaml, the
             same weights; and the default points, their axes, bases and operations are those of `vernier points`
  probe      logits with recording on and off, and generated tokens: the same bits
  generate   12 tokens behind a prompt, every point of every step within
  16 bits    bfloat16 and float16 within, in units of the reference in that format
  batch      three prompts of different lengths, padded left, and 4 generated tokens: each row as if it were alone
  faults     a model with a mistake put in by monkey-patching: `vernier compare --explain` names the node and the fault

and once: windows and static caches, float64, selections of layers and tokens, a model in memory, and what is refused.
"""
import contextlib
import json
import os
import re
import sys
import tempfile

from needs_transformers import torch, transformers

from record_help import (BF16, F16, F32, FAMILIES, OUTSIDE_LIMITS, Bench, greedy, load, model_of, prompt, record, run,
                         vernier_parity)
from record_experts import experts
from record_variants import odd
from vernier_parity import about

from vernier_parity.functions import _once, probabilities_of

# what has no name in a recording as of any model
UNNAMED = {"gemma2": "token_embed|logits", "qwen3_5_text": r"layer\d\.gdn_.*|layer3\.(q_proj|attn_gate|attn_context)"}
CAPPED = ("gemma2",)  # transformers' sdpa ignores the cap of scores: it computes another model

# ---- correct runs --------------------------------------------------------------------------------


def points_of(bench, family):
    """name -> (axes, basis, op, recorded) of `vernier points`."""
    found = {}
    for line in bench.vernier("points", model_of(family)).stdout.splitlines()[1:]:
        name, rest = line.split(None, 1)
        axes, rest = rest.split("(", 1)
        basis, op, recorded = rest.split(")", 1)[1].split(None, 2)
        found[name] = (" ".join(axes.split()), basis, op, recorded)
    return found


def plain(bench, family):
    ids = prompt("p070")
    ref, cand = bench.reference(family, ids, "--points", "*"), bench.at("cand.h5")
    for attention in ("eager", "sdpa")[: 1 if family in CAPPED else 2]:
        model = load(family, attention=attention)
        bare = run(model, ids)
        with record(model, cand, points="*"):
            watched = run(model, ids)
        after = run(model, ids)
        bench.say(f"{family} {attention} probe", torch.equal(bare, watched) and torch.equal(bare, after),
                  "the same bits")
        bench.within(f"{family} {attention} plain", ref, cand)
        checked = bench.vernier("show", "--check", cand)
        bench.say(f"{family} {attention} alone", checked.returncode == 0, checked.stdout.splitlines()[-1])
        with vernier_parity.open(cand) as r:
            bench.say(f"{family} {attention} logits", torch.equal(torch.tensor(r["logits"]), bare[0]))
    said = points_of(bench, family)
    with record(model, cand):
        run(model, ids)
    with vernier_parity.open(cand) as r:
        default = [n for n, p in said.items() if p[3] != "on demand"]
        facts = lambda n: tuple(r.attributes(n)[k] for k in ("axes", "basis", "op"))
        other = [n for n in default if n not in r or facts(n) != said[n][:3]]
        bench.say(f"{family} default points", sorted(r.names()) == sorted(default) and not other,
                  f"{len(default)} {other or ''}")
    with record(model, cand, any=True, functions="all"):
        run(model, ids)
    rest = UNNAMED.get(family, "")
    status, report = bench.compare(bench.reference(family, ids, name="few.h5"), cand, "--names", "hf", "--allow",
                                   "extra" + (",missing" if rest else ""))
    found = {s: [c["name"] for c in report.get("checkpoints", []) if c["status"] == s] for s in ("within", "missing")}
    scaled = family != "gemma2" or hasattr(model.model.embed_tokens, "embed_scale")  # in older releases by a function
    bench.say(f"{family} as any model", status == int(not scaled) and len(found["within"]) > 30 and all(
        re.fullmatch(rest, n) for n in found["missing"]), f"{len(found['within'])} within, not there: "
        f"{len(found['missing'])}")
    with record(model, cand):
        run(model, ids)
    weights = bench.vernier("weights", ref, cand)
    bench.say(f"{family} weights", weights.returncode == 0 and "all equal" in weights.stdout,
              weights.stdout.splitlines()[-1])


def generate(bench, family):
    ids, cand = prompt("p070"), bench.at("cand.h5")
    model = load(family, attention="eager" if family in CAPPED else "sdpa")
    bare = greedy(model, ids, 13)
    with record(model, cand, points="*"):
        watched = greedy(model, ids, 13)
    tokens = watched[0].tolist()
    ref = bench.reference(family, ids, "--force-ids", ",".join(map(str, tokens[len(ids) : -1])), "--points", "*")
    with vernier_parity.open(cand) as r:
        whole = r.token_ids.tolist() == tokens[:-1] and r.steps == 13 and r.step(12)["position"] == len(tokens) - 2
    bench.say(f"{family} generate probe", torch.equal(bare, watched) and whole,
              f"{len(tokens) - len(ids) - 1} tokens behind the prompt")
    bench.within(f"{family} generate", ref, cand)


def halves(bench, family):
    ids, cand = prompt("p070"), bench.at("cand.h5")
    ref = bench.reference(family, ids)
    for word, dtype in (("bf16", BF16), ("f16", F16)):
        floor = bench.reference(family, ids, "--precision", word, name="floor.h5")
        model = load(family, dtype, "sdpa" if word == "bf16" and family not in CAPPED else "eager")
        with record(model, cand):
            logits = run(model, ids)
        bench.within(f"{family} {word}", ref, cand, "--floor", floor)
        with vernier_parity.open(cand) as r:
            same = torch.equal(torch.tensor(r["logits"]), logits[0].to(F32 if word == "bf16" else dtype))
            bench.say(f"{family} {word} logits", same and r.run["precision"] == word)
        model = load(family)
        with record(model, cand), torch.autocast("cpu", dtype=dtype):  # where programs have it, inside
            run(model, ids)
        bench.within(f"{family} autocast {word}", ref, cand, "--model", model_of(family))
        with vernier_parity.open(cand) as r:
            bench.say(f"{family} autocast {word} says so", r.run["precision"] == "autocast-" + word)


def batch(bench, family):
    rows, cand = [prompt("p017"), prompt("p070")[:30], prompt("p002")], bench.at("cand.h5")
    longest = max(map(len, rows))
    padded = [[0] * (longest - len(r)) + r for r in rows]
    mask = torch.tensor([[0] * (longest - len(r)) + [1] * len(r) for r in rows])
    model = load(family, attention="eager")
    bare = greedy(model, padded, 5, attention_mask=mask)
    with record(model, cand):
        watched = greedy(model, padded, 5, attention_mask=mask)
    bench.say(f"{family} batch probe", torch.equal(bare, watched))
    for i, row in enumerate(rows):
        more = watched[i, longest:-1].tolist()
        ref = bench.reference(family, row, "--force-ids", ",".join(map(str, more)))
        bench.within(f"{family} batch row {i} of {len(row)} tokens", ref, cand, "--batch-row", str(i))

    # a static cache is given a mask of another kind than the caller's
    with record(model, cand):
        watched = greedy(model, padded, 3, attention_mask=mask, cache_implementation="static", disable_compile=True)
    ref = bench.reference(family, rows[0], "--force-ids", ",".join(map(str, watched[0, longest:-1].tolist())))
    bench.within(f"{family} batch with a static cache", ref, cand, "--batch-row", "0")
    with record(model, cand):
        run(model, [r + [0] * (longest - len(r)) for r in rows], attention_mask=mask.flip(-1))
    for i in (0, 2):
        bench.within(f"{family} batch padded right, row {i}", bench.reference(family, rows[i]), cand, "--batch-row",
                     str(i))


# ---- mistakes ------------------------------------------------------------------------------------


@contextlib.contextmanager
def replaced(where, name, value):
    own = name in vars(where)
    before = getattr(where, name)
    setattr(where, name, value)
    try:
        yield
    finally:
        setattr(where, name, before) if own else delattr(where, name)


def interleaved(q, k, cos, sin, unsqueeze_dim=1):
    """Pairs 2i and 2i + 1."""
    cos, sin = (t.unsqueeze(unsqueeze_dim)[..., : t.shape[-1] // 2].repeat_interleave(2, -1) for t in (cos, sin))
    R = cos.shape[-1]
    quarter = lambda x: torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    rotated = lambda x: torch.cat((x[..., :R] * cos + quarter(x[..., :R]) * sin, x[..., R:]), -1)
    return rotated(q), rotated(k)


def seen_ahead(config, inputs_embeds, **more):
    """Only the window hides anything."""
    T, window = inputs_embeds.shape[1], getattr(config, "sliding_window", None)
    i, j = torch.arange(T)[:, None], torch.arange(T)
    least = torch.finfo(inputs_embeds.dtype).min
    return torch.zeros(1, 1, T, T).masked_fill(j <= i - window, least) if window else torch.zeros(1, 1, T, T)


def faults(model, family):
    """(what, expected first origin, expected ids, how it is put in), the mixer that attends in the last layer."""
    gpt2 = family == "gpt2"
    layers = model.transformer.h if gpt2 else model.model.layers
    last = len(layers) - 1
    layer, p = layers[last], f"layer{last}."
    attn = layer.attn if gpt2 else layer.self_attn
    source = sys.modules[type(attn).__module__]
    norm = layer.ln_1 if gpt2 else layer.input_layernorm
    eps = next(n for n in ("eps", "variance_epsilon") if hasattr(norm, n))
    yield "wrong eps", p + "attn_norm", ("N1",), replaced(norm, eps, 3e-2)
    yield "no scale", p + "attn_context", ("A1.missing",), replaced(attn, "scaling", 1.0)
    first = 0 if family != "qwen3_5_text" else last
    masks = [n for n in ("create_sliding_window_causal_mask", "create_causal_mask") if hasattr(source, n)]
    slides = family in ("gemma2", "mistral")
    yield "no causal mask", f"layer{first}.attn_context", ("A2",), replaced(source, masks[0 if slides else -1],
                                                                            seen_ahead)
    if gpt2:
        fc = layer.mlp.c_fc
        yield "a bias dropped", p + "up_proj", ("W6",), replaced(fc, "forward", lambda x: x @ fc.weight)
        return
    yield "interleaved RoPE", f"layer{first}.q_rope", ("R1",), replaced(source, "apply_rotary_pos_emb", interleaved)
    mlp = layer.mlp
    yield "gate and up swapped", p + "mlp_act", ("W4.act",), replaced(
        mlp, "forward", lambda x: mlp.down_proj(mlp.act_fn(mlp.up_proj(x)) * mlp.gate_proj(x)))
    if attn.k_proj.bias is not None:
        product = attn.k_proj
        yield "a bias dropped", p + "k_proj", ("W6",), replaced(product, "forward",
                                                                lambda x: torch.nn.functional.linear(x, product.weight))
    if hasattr(attn, "q_norm"):
        yield "q_norm skipped", p + "q_norm", ("N8.skipped",), replaced(attn.q_norm, "forward", lambda x: x)


def planted(bench, family):
    ids, cand = prompt("p070"), bench.at("cand.h5")
    ref, model = bench.reference(family, ids), load(family)
    for what, origin, ids_of_fault, mistake in faults(model, family):
        with mistake, record(model, cand):
            run(model, ids)
        status, report = bench.compare(ref, cand, "--explain", "--model", model_of(family))
        told = {e["checkpoint"]: e["answers"] for e in report.get("explanations", []) if e["explained"]}
        origins = report.get("origins") or [report["summary"]]
        named = told.get(origin, [])
        right = status == OUTSIDE_LIMITS and origins[0] == origin and any(a["id"] in ids_of_fault for a in named)
        bench.say(f"{family} {what}", right,
                  f"{origins[0]}: {', '.join(a['id'] + ' ' + a['words'] for a in named[:2]) or 'none'}")


# ---- once ----------------------------------------------------------------------------------------


def refused(bench, what, words, f):
    try:
        f()
        bench.say(f"refused: {what}", False)
    except vernier_parity.RecordingError as e:
        bench.say(f"refused: {what}", words in str(e) and "\n" not in str(e), str(e))


def once(bench):
    heads = torch.randn(1, 5, 2, 3)  # (B,T,H,K)
    bench.say("heads that were repeated side by side, or in turn", all(torch.equal(_once(t, 2), heads) for t in (
        heads, heads.repeat_interleave(2, 2), heads.repeat(1, 1, 2, 1))))
    ids, cand, model = prompt("p017"), bench.at("cand.h5"), load("qwen2")
    ref = bench.reference("qwen2", ids)
    with record(model, cand, "layer*.{q,k}_rope", layers=1, tokens="3-5", run={"purpose": "a selection"}):
        run(model, ids)
    with vernier_parity.open(cand) as r:
        bench.say("layers, tokens, points", r.names() == ["layer1.q_rope", "layer1.k_rope"]
                  and r["layer1.q_rope"].shape[0] == 3
                  and (r.step(0)["first_row"], r.step(0)["rows"]) == (3, 3) and r.run["purpose"] == "a selection")
    bench.within("a selection", ref, cand, "--points", "layer1.{q,k}_rope", "--allow", "missing")
    with record(model, cand, "layer1.input"):
        run(model, ids)
    bench.within("a second name alone", ref, cand, "--points", "layer1.input")
    with record(model, cand, tokens="last"):
        greedy(model, ids, 3)
    with vernier_parity.open(cand) as r:
        bench.say("the last token of each step",
                  r.steps == 3 and all(r[f"step.{i}/layer0.q_rope"].shape[0] == 1 for i in range(3)))
    shared = load("qwen2")
    shared.model.layers[1] = shared.model.layers[0]  # one module in two places, of a body that is called by itself
    with record(shared, cand), torch.no_grad():
        shared.model(torch.tensor([ids]), use_cache=False)
    with vernier_parity.open(cand) as r:
        bench.say("a layer that occurs twice", {"layer0.input", "layer1.input"} <= set(r.names()))

    # a cache is known by what it is: past_key_values and, from transformers 5.24, cache; by name,
    # by position, and among results that have no names
    def in_chunks():
        with torch.no_grad():
            out = model(torch.tensor([ids[:5]]))
            cache = out[1]
            model(torch.tensor([ids[5:9]]), past_key_values=cache)
            model(torch.tensor([ids[9:12]]), None, None, cache)
            model(torch.tensor([ids[12:]]), None, None, cache, return_dict=False)

    with record(model, cand):
        in_chunks()
    with vernier_parity.open(cand) as r:
        bench.say("four calls are four steps", [r.step(i)["position"] for i in range(r.steps)] == [0, 5, 9, 12])
    bench.within("a prompt in four calls", ref, cand)

    # static caches are longer than the tokens
    with record(model, cand, "*"):
        tokens = greedy(model, ids, 4, cache_implementation="static", disable_compile=True)[0].tolist()
    decoded = bench.reference("qwen2", ids, "--force-ids", ",".join(map(str, tokens[len(ids) : -1])), "--points", "*",
                              name="steps.h5")
    bench.within("a static cache", decoded, cand)

    # one prompt with padding is its row of a batch of one
    mask = torch.tensor([[0] * 3 + [1] * len(ids)])
    with record(model, cand):
        greedy(model, [0] * 3 + ids, 3, attention_mask=mask)
    with vernier_parity.open(cand) as r:
        tokens = r.token_ids.ravel().tolist()[3:]
    alone = bench.reference("qwen2", ids, "--force-ids", ",".join(map(str, tokens[len(ids) :])), name="steps.h5")
    bench.within("one prompt with padding", alone, cand, "--batch-row", "0")

    # an attention that gets its window as an argument, like flash attention, not as a mask
    q, k = (torch.randn(1, 2, n, 8) for n in (5, 9))
    i, j = torch.arange(4, 9)[:, None], torch.arange(9)
    given = dict(module=None, query=q, key=k, scaling=0.3)
    for window in (None, 3):
        told = probabilities_of(4, dict(given, sliding_window=window))
        shown = probabilities_of(4, dict(given, attention_mask=((j <= i) & (j > i - (window or 99)))[None, None]))
        bench.say(f"probabilities behind 4 cached tokens, window {window}", torch.equal(told, shown))

    odd(bench, ref, ids, cand)
    experts(bench, ids, cand)

    # judged while it is recorded: the run ends inside the forward pass, and the file says where,
    # and which line made it
    with record(model, cand):
        run(model, ids)
    bad, stop = load("qwen2"), bench.at("stop.h5")
    bad.model.layers[1].self_attn.k_proj.register_forward_hook(lambda m, a, out: out * 1.01)
    try:
        with record(bad, stop, against=cand, stop_at_first=True):
            run(bad, ids)
        bench.say("a run stops where it differs", False, "it went on")
    except vernier_parity.Diverged as e:
        with vernier_parity.open(stop) as r:
            made = r.attributes("layer1.k_proj")["source_line"]
            bench.say("a run stops where it differs", r.complete and (e.name, r.run["stopped"]) == ("layer1.k_proj",)
                      * 2 and "layer1.v_proj" not in r)
            bench.say("the line of transformers", made.startswith("transformers/models/qwen2/modeling_qwen2.py:"), made)
    compared = bench.vernier("compare", cand, stop)
    bench.say("a stopped run is compared", compared.returncode == 1
              and f"candidate {made}; reference {made}" in compared.stdout)

    double = load("qwen2", torch.float64)
    with record(double, cand):
        run(double, ids)
    with vernier_parity.open(cand) as r:
        bench.say("float64", r["layer1.mlp_act"].dtype == "float64" and r.run["precision"] == "f64")

    # a model in memory: changed, it says so; from nowhere, it is recorded with its own
    # config and weights
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[0, 0] += 1
    with record(model, cand):
        run(model, ids)
    differ = bench.vernier("weights", ref, cand)
    bench.say("a changed weight", differ.returncode == 1 and "layer 1: mlp.up_proj.weight" in differ.stdout,
              differ.stdout.splitlines()[-1])
    born = transformers.Qwen2ForCausalLM(load("qwen2").config.__class__(vocab_size=50, hidden_size=16,
                                                                        intermediate_size=24, num_hidden_layers=1,
                                                                         num_attention_heads=2,
                                                                        num_key_value_heads=1)).eval()
    with record(born, cand):
        run(born, [1, 2, 3])
    shown = bench.vernier("show", cand)
    with vernier_parity.open(cand) as r:
        bench.say("a model in memory", shown.returncode == 0 and json.loads(r.config)["hidden_size"] == 16)

    with torch.autocast("cpu", dtype=BF16), record(born, cand):
        run(born, [1, 2, 3])
    with vernier_parity.open(cand) as r:
        bench.say("autocast", r.run["precision"] == "autocast-bf16"
                  and r.attributes("layer0.q_proj")["dtype"] == "bf16")
    born.model.layers[0].mlp.to(BF16)
    inner = born.model.layers[0].mlp.forward
    born.model.layers[0].mlp.forward = lambda x: inner(x.to(BF16)).float()
    with record(born, cand):
        run(born, [1, 2, 3])
    with vernier_parity.open(cand) as r:
        bench.say("one module in another format", r.run["precision"] == "mixed-bf16", r.run["precision"])


def wrong(bench):
    ids, cand, model = prompt("p017"), bench.at("wrong.h5"), load("qwen2")

    def block(f=lambda: run(model, ids), which=None, **more):
        with record(which or model, cand, **more):
            f()

    refused(bench, "a glob of nothing", "'layer*.q_rop' matches no checkpoint",
            lambda: block(points=["logits", "layer*.q_rop"]))
    refused(bench, "braces", "braces do not match", lambda: block(points="layer*.{q,k_rope"))
    refused(bench, "layers", "the model has 2", lambda: block(layers="1-9"))
    refused(bench, "tokens", "A-B", lambda: block(tokens="7-3"))
    refused(bench, "no call", "not called", lambda: block(lambda: None))
    refused(bench, "two runs", "a recording is one run", lambda: block(lambda: (run(model, ids), run(model, ids))))

    def another_precision():
        cache = model(torch.tensor([ids])).past_key_values
        with torch.autocast("cpu", dtype=BF16):
            model(torch.tensor([[5]]), past_key_values=cache)

    refused(bench, "two precisions", "one run, in one precision", lambda: block(another_precision))
    refused(bench, "embeddings", "token ids", lambda: block(lambda: model(inputs_embeds=torch.zeros(1, 3, 48))))
    refused(bench, "no model", "record() knows", lambda: record(None, cand).__enter__())
    refused(bench, "no such directory", "does not exist", lambda: record(model, "/nowhere/x.h5").__enter__())

    # what another release may have changed names the releases
    releases = about.releases()
    known = releases.startswith(f"transformers {transformers.__version__}; tested: ")
    bench.say("the releases tested", known, releases)
    refused(bench, "two runs, and the releases", f"({releases})",
            lambda: block(lambda: (run(model, ids), run(model, ids))))
    odd = load("qwen2")
    for layer in odd.model.layers:
        del layer.self_attn.head_dim
    refused(bench, "a module of another kind", f"AttributeError: 'Qwen2Attention' object has no attribute 'head_dim' "
            f"({releases})", lambda: record(odd, cand).__enter__())
    odd = load("qwen2")
    wide = odd.model.layers[0].mlp
    wide.gate_proj.register_forward_hook(lambda m, a, out: out[:, :5])
    wide.forward = lambda x: wide.gate_proj(x)[:, :1] * 0 + x * 0
    refused(bench, "another shape", f"({releases})", lambda: block(lambda: run(odd, ids), which=odd))
    with replaced(sys.modules["transformers"], "__version__", "6.0.1"):  # transformers puts another module there
        refused(bench, "an unknown release", "(transformers 6.0.1, which this recorder does not know; tested: ",
                lambda: block(lambda: (run(model, ids), run(model, ids))))

    refused(bench, "some logits", "logits_to_keep",
            lambda: block(lambda: run(model, ids, logits_to_keep=torch.tensor([2, 5]))))
    refused(bench, "a beam search", "another order", lambda: block(lambda: greedy(model, ids, 4, num_beams=3)))
    refused(bench, "no such token", "the run has 17", lambda: block(tokens="30-40"))
    padded = torch.tensor([[1] * len(ids), [1] * 9 + [0] * (len(ids) - 9)])
    refused(bench, "the last of a row padded right", "ends in padding", lambda: block(
        lambda: run(model, [ids, ids], attention_mask=padded), tokens="last"))
    compiled = torch.compile(model, backend="eager")
    refused(bench, "a compiled model", "torch.compile", lambda: block(lambda: run(compiled, ids)))
    model.model.layers[0].compile(backend="eager")
    refused(bench, "a compiled layer", "torch.compile", block)
    model = load("qwen2")

    class Stop(Exception):
        pass

    def fails():
        run(model, ids)
        raise Stop

    with contextlib.suppress(Stop):
        block(fails)
    with vernier_parity.open(cand + ".partial") as r:
        bench.say("an exception", not os.path.exists(cand) and not r.complete and r.token_ids.tolist() == ids
                  and len(r.names()) > 30)
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())
    bench.say("nothing stays behind",
              hooks == 0 and "get_interface" not in vars(transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS))


def main():
    short = sys.argv[2:] == ["--short"]
    asked = [] if short else sys.argv[2:]
    if len(sys.argv) < 2 or not set(asked) <= set(FAMILIES):
        sys.exit(__doc__)
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(sys.argv[1], folder)
        for n, family in enumerate(asked or FAMILIES):
            plain(bench, family)
            for i, part in enumerate((generate, halves, batch, planted)):
                if not short or (n + i) % 6 == 0:
                    part(bench, family)
        if not asked:
            once(bench)
            wrong(bench)
    print(f"{bench.good} passed, {bench.bad} failed")
    sys.exit(1 if bench.bad else 0)


if __name__ == "__main__":
    main()
