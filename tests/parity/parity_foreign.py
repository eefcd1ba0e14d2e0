"""parity_foreign.py VERNIER: other engines' recordings, as they come, against the reference.

What transformers' modules and llama.cpp's graph gave (fixtures/foreign, made by them), and golden
recordings of transformers rearranged here as other engines lay them out: vLLM's fused and paired
tensors, the ranks of a tensor-parallel run, a cache in blocks, a prompt in a padded batch. Each
agrees with vernier's reference, and none agrees after a change that makes it wrong. Prints how many
checkpoints each compared and the worst nmse.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
try:
    import editing as h5py
    import numpy as np
except ImportError:
    print("skipped: no h5py or numpy")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "..", "fixtures")
FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen3_5_text")
vernier = os.path.abspath(sys.argv[1])
bad = 0
rng = np.random.default_rng(7)
with open(os.path.join(FIXTURES, "prompts", "p017.ids"), encoding="utf-8") as f:
    IDS = [int(i) for i in f.read().split(",")]
T = len(IDS)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def run(*args):
    return subprocess.run([vernier, *args], capture_output=True, text=True)


def expect(what, status, *args, says="", least=0):
    """compare with these arguments ends with this status, prints that text, and compared at least this many
    checkpoints."""
    global bad
    out = re.sub(r'\W+', '_', what) + ".json"
    r = run("compare", *args, "-o", out, "--force")
    n = worst = 0
    if r.returncode < 2:
        with open(out, encoding="utf-8") as f:
            j = json.load(f)
        values = [c["metrics"]["nmse"] for c in j["checkpoints"] if c.get("elements")
                  and c["metrics"]["nmse"] is not None]
        n, worst = len(values), max(values, default=0)
        text = json.dumps(j)
    else:
        text = r.stderr
    lines = [line for line in r.stderr.splitlines()
             if not line.startswith(("vernier compare: warning: ", "refused: ", "(vernier compare --help)"))]
    good = r.returncode == status and says in text and n >= least and len(lines) <= 1
    bad += not good
    print(f"{'ok' if good else 'BAD':4} {what:52} exit {r.returncode}"
          + (f", {n:3} compared, worst nmse {worst:.1e}" if r.returncode < 2 else f": {r.stderr.strip()}"))
    if not good:
        print(f"     expected exit {status}, at least {least}, and {says!r}\n{r.stdout[-1500:]}{r.stderr[-1500:]}")


class Foreign:
    """A recording as another engine writes it: names, numbers, and as little else as can be."""

    def __init__(self, path, ids, positions=None, steps=None, **run):
        self.f = h5py.File(path, "w")
        self.f.attrs.update(format="vernier-checkpoint", format_version=1, complete=1)
        g = self.f.create_group("run")
        g.attrs.update(engine="another", precision="f32", **run)
        g["token_ids"] = np.asarray(ids, "<i4")
        g["positions"] = np.asarray(positions if positions is not None else np.arange(len(ids)), "<i4")
        self.step = self.f.create_group("step.0")
        self.step.attrs.update(position=0, tokens=np.asarray(ids).shape[-1])

    def put(self, name, a, axes=None):
        d = self.step.create_dataset(name.replace(".", "/", 1) if name.startswith("layer") else name,
                                     data=np.ascontiguousarray(a))
        if axes:
            d.attrs["axes"] = axes

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.f.close()


def golden(family):
    """name -> (array, axes) of transformers' float32 run of the prompt."""
    found = {}
    with h5py.File(os.path.join(FIXTURES, "golden", f"{family}-trained.p017.f32.h5"), "r") as f:
        def visit(name, d):
            if isinstance(d, h5py.Dataset):
                axes = d.attrs["axes"]
                found[name.replace("/", ".")] = (d[()], axes.decode() if isinstance(axes, bytes) else axes)
        f["step.0"].visititems(visit)
    return found


def edited(path, to, change):
    with open(path, "rb") as a, open(to, "wb") as b:
        b.write(a.read())
    with h5py.File(to, "r+") as f:
        change(f["step.0"])
    return to


# ---- unchanged ----------------------------------------------------------------------


def as_they_come():
    small = ",".join(str(i % 40) for i in IDS)
    for family in FAMILIES:
        model = os.path.join(FIXTURES, f"{family}-trained")
        run("capture", "ref", model, "--ids", f"@{FIXTURES}/prompts/p017.ids", "--points", "*", "-o", f"{family}.h5",
            "--force")
        theirs = os.path.join(FIXTURES, "foreign", f"hf-{family}.h5")
        keep = ["--names", "hf", "--allow", "missing", "--limits", "fp32.yaml"]
        expect(f"transformers {family}", 0, f"{family}.h5", theirs, *keep, least=33)
        expect(f"transformers {family} as the reference", 0, theirs, f"{family}.h5", "--ref-names", "hf", "--allow",
               "extra", "--limits", "fp32.yaml", least=33)

        def swapped(step, family=family):
            a, b = (("transformer.h.1.ln_1", "transformer.h.1.ln_2") if family == "gpt2"
                    else ("model.layers.1.mlp.gate_proj", "model.layers.1.mlp.up_proj"))
            x, y = step[a][()], step[b][()]
            step[a][...], step[b][...] = y, x
        expect(f"transformers {family}, two swapped", 1, f"{family}.h5", edited(theirs, "bad.h5", swapped), *keep)

        # llama.cpp does not know the trained ones of these: biases of Qwen3,
        # widths of Qwen3.5's heads.
        other = {"qwen3": "gguf/qwen3-tiny.f32.gguf", "qwen3_5_text": "foreign/qwen35-even.f32.gguf"}.get(family)
        ref = f"{family}.h5"
        if other:
            ref = "tiny.h5"
            run("capture", "ref", os.path.join(FIXTURES, other), "--ids", small, "--points", "*", "-o", ref, "--force")
        theirs = os.path.join(FIXTURES, "foreign", f"llama.cpp-{family}.h5")
        # Its gelu reads a table of float16.
        keep = ["--names", "llama.cpp", "--allow", "missing", "--limits", "fp16-acc32.yaml" if family == "gpt2"
                else "fp32.yaml"]
        expect(f"llama.cpp {family}", 0, ref, theirs, *keep, least={"qwen3": 20, "qwen3_5_text": 65}.get(family, 31))
        if family in ("llama", "mistral"):
            def older(step):
                for n in range(2):
                    del step[f"kqv_out-{n}"]
                    step.move(f"attn_out-{n}", f"kqv_out-{n}")
            expect(f"llama.cpp {family}, kqv_out as it was", 0, ref, edited(theirs, "older.h5", older), *keep,
                   says="kqv_out-0 is taken as layer0.attn_out", least=35)
        if family == "llama":
            def unsaid(step):
                older(step)
                step["ffn_inp-0"][0, 0] = np.nan
            expect(f"llama.cpp {family}, a NaN tells nothing", 1, ref, edited(theirs, "odd.h5", unsaid), *keep,
                   says="kqv_out-1 is taken as layer1.attn_out", least=35)

            def undecided(step):
                for name in [n for n in step if n.startswith(("attn_out", "ffn_inp", "kqv-"))]:
                    del step[name]
            expect(f"llama.cpp {family}, kqv_out undecided", 2, ref, edited(theirs, "odd.h5", undecided), *keep,
                   says="one layer must have its residual stream recorded before and after it")


# ---- vLLM --------------------------------------------------------------------------------


def flat(a):
    return a.reshape(a.shape[0], -1)


def put_vllm(f, g, layer):
    """One layer as vLLM's modules return it: fused products, pairs of hidden and residual."""
    at = lambda point: g[f"layer{layer}.{point}"][0]
    m = f"model.layers.{layer}."
    f.put(m + "input_layernorm.0", at("attn_norm"))
    f.put(m + "self_attn.qkv_proj.0", np.concatenate([flat(at(p)) for p in ("q_proj", "k_proj", "v_proj")], 1))
    if f"layer{layer}.q_norm" in g:
        f.put(m + "self_attn.q_norm", at("q_norm"))
        f.put(m + "self_attn.k_norm", at("k_norm"))
    f.put(m + "self_attn.rotary_emb.0", flat(at("q_rope")))
    f.put(m + "self_attn.rotary_emb.1", flat(at("k_rope")))
    f.put(m + "self_attn.attn", flat(at("attn_context")))
    f.put(m + "self_attn.o_proj.0", at("attn_out"))
    f.put(m + "post_attention_layernorm.0", at("mlp_norm"))
    f.put(m + "post_attention_layernorm.1", at("attn_residual"))
    f.put(m + "mlp.gate_up_proj.0", np.concatenate([at("gate_proj"), at("up_proj")], 1))
    f.put(m + "mlp.act_fn", at("mlp_act"))
    f.put(m + "mlp.down_proj.0", at("down_proj"))
    f.put(m + "0", at("down_proj"))
    f.put(m + "1", at("attn_residual"))


def vllm():
    for family in ("llama", "mistral", "qwen2", "qwen3"):
        g = golden(family)
        with Foreign("vllm.h5", IDS) as f:
            f.put("model.embed_tokens", g["embed"][0])
            for layer in range(2):
                put_vllm(f, g, layer)
            f.put("model.norm.0", g["final_norm"][0])
            f.put("logits_processor", np.pad(g["logits"][0], ((0, 0), (0, 64)), constant_values=-1e30))
        keep = ["--names", "vllm", "--allow", "missing", "--limits", "fp32.yaml"]
        expect(f"vLLM {family}", 0, f"{family}.h5", "vllm.h5", *keep, least=31)

        def shifted(step):
            a = step["model.layers.1.self_attn.qkv_proj.0"]
            a[...] = np.roll(a[()], 8, 1)
        expect(f"vLLM {family}, fused rows rotated", 1, f"{family}.h5", edited("vllm.h5", "bad.h5", shifted), *keep)


# ---- ranks -------------------------------------------------------------------------------

CUT = {"head": 0, "kv_head": 0, "ffn": 0, "vocab": 0, "lin_key": 0, "lin_head": 0}
PARTS = {"qkv": lambda g, n: [flat(g[f"{n}.{p}"][0]).shape[1] for p in ("q_proj", "k_proj", "v_proj")],
         "lin_mix": lambda g, n: [flat(g[f"{n}.{p}"][0]).shape[1] for p in ("gdn_q", "gdn_k", "gdn_v")]}


def piece(a, axis, r, w):
    """Rank r's part of an axis; where there are fewer than ranks, the one of its group."""
    n = a.shape[axis]
    return np.take(a, range(r * n // w, (r + 1) * n // w) if n >= w else [r * n // w], axis)


def shard(g, name, a, axes, r, w, padded):
    words = axes.split()
    layer = name.split(".")[0]
    if words[-1] == "vocab":
        a = np.pad(a, ((0, 0), (0, padded)))
    for k, word in enumerate(words):
        if word in CUT:
            return piece(a, k, r, w)
        if word in PARTS:
            ends = np.cumsum(PARTS[word](g, layer))[:-1]
            return np.concatenate([piece(p, k, r, w) for p in np.split(a, ends, axis=k)], k)
    return a


def write_ranks(family, g, w, *, partial=False, fused=False, numbered=True, padded=0):
    paths = []
    noise = {n: rng.standard_normal((w,) + g[n][0].shape).astype("f4") for n in g
             if n.endswith(("attn_out", "down_proj"))}
    for r in range(w):
        paths.append(f"{family}.rank{r}.h5")
        facts = dict(rank=r, world_size=w) if numbered else {}
        with Foreign(paths[-1], IDS, **facts) as f:
            for name, (a, axes) in g.items():
                layer, _, point = name.rpartition(".")
                if fused and point in ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj") and "layer0" == layer:
                    continue
                if partial and name in noise:  # parts that add up to it
                    rest = noise[name] - noise[name].mean(0)
                    a = a / w + rest[r]
                f.put(name, shard(g, name, a, axes, r, w, padded).astype("f4"), axes)
            if fused:
                at = lambda p: flat(shard(g, f"layer0.{p}", *g[f"layer0.{p}"], r, w, 0))
                f.put("layer0.qkv_proj", np.concatenate([at(p) for p in ("q_proj", "k_proj", "v_proj")], 1),
                      "token qkv")
                f.put("layer0.gate_up_proj", np.concatenate([at(p) for p in ("gate_proj", "up_proj")], 1),
                      "token gate_up")
    return paths


def ranks():
    bare = ["--allow", "missing", "--limits", "fp32.yaml"]
    keep = ["--allow", "missing,ranks", "--limits", "fp32.yaml"]  # the logits are shards on every rank
    for family, w in (("gpt2", 2), ("gpt2", 3), ("llama", 2), ("llama", 6), ("qwen2", 2), ("qwen3_5_text", 2)):
        g = golden(family)
        n = len(g) - 8
        p = write_ranks(family, g, w)
        expect(f"{w} ranks of {family}", 0, f"{family}.h5", "--shard", *p[::-1], *keep, least=n, says=f"{w} ranks")
        p = write_ranks(family, g, w, partial=True, numbered=False, padded=w * 64 - 512 % (w * 64))
        expect(f"{w} ranks of {family}, partial sums, padded", 0, f"{family}.h5", "--shard", *p, *keep, least=n,
               says="taken as partial sums")
        expect(f"{w} ranks of {family}, partial sums, padded, logits nowhere whole", 1, f"{family}.h5", "--shard", *p,
               *bare, "--strict", least=n,
               says="is not recorded")
        expect(f"{w} ranks of {family}, partial sums, padded, no warning", 0, f"{family}.h5", "--shard", *p, *keep[2:],
               "--allow", "missing,ranks",
               "--strict", least=n, says="allowed (ranks)")
        if family in ("llama", "qwen2") and w == 2:
            p = write_ranks(family, g, w, fused=True)
            expect(f"{w} ranks of {family}, fused", 0, f"{family}.h5", "--shard", *p, *keep, least=n)
    g = golden("llama")
    p = write_ranks("llama", g, 2, numbered=False)
    expect("ranks in the wrong order", 1, "llama.h5", "--shard", p[1], p[0], *keep)
    p = write_ranks("llama", g, 6)
    expect("a rank missing", 2, "llama.h5", "--shard", *p[:4], *keep, says="is rank 0 of 6, 4 are given")
    expect("a file twice", 2, "llama.h5", "--shard", *p[:5], p[1], *keep, says="given twice, as rank 1 and as rank 5")
    expect("a rank twice", 2, "llama.h5", "--shard", *p[:5], edited(p[1], "wrong.h5", lambda step: None), *keep,
           says="and so is")

    def other(step):
        step["layer1"]["mlp_norm"][3, 5] += 0.25
    wrong = edited(p[2], "wrong.h5", other)
    expect("replicas that disagree", 2, "llama.h5", "--shard", *p[:2], wrong, *p[3:], *keep,
           says="layer1.mlp_norm should equal that of rank 0")
    expect("replicas that disagree, allowed", 0, "llama.h5", "--shard", *p[:2], wrong, *p[3:], "--limits", "fp32.yaml",
           "--allow", "missing,replicas,ranks",
           says="differ by up to 0.25")

    def odd(step):
        step["layer1"]["mlp_norm"][3, 5] = np.nan
    expect("replicas that differ by a NaN", 2, "llama.h5", "--shard", *p[:2], edited(p[2], "wrong.h5", odd), *p[3:],
           *keep,
           says="differs from llama.rank0.h5 in elements that are NaN or infinite on one rank only")

    def lost(step):
        del step["layer0"]["q_rope"]
    expect("a rank without a tensor", 2, "llama.h5", "--shard", edited(p[0], "wrong.h5", lost), *p[1:], *keep,
           says="has no layer0.q_rope in step 0")

    def cached(step):
        step["layer0"]["k_rope"][...] = 2 * step["layer0"]["k_rope"][()]
    expect("groups of keys that disagree", 2, "llama.h5", "--shard", p[0], edited(p[1], "wrong.h5", cached), *p[2:],
           *keep, says="layer0.k_rope should equal that of rank 0")
    def wide(step):
        a = step["layer1"]["mlp_norm"][()]
        del step["layer1"]["mlp_norm"]
        step["layer1"].create_dataset("mlp_norm", data=np.tile(a, (1, 400))).attrs["axes"] = "token hidden"
    expect("a replica of another shape", 2, "llama.h5", "--shard", *p[:5], edited(p[5], "wrong.h5", wide), *keep,
           says="every rank should have the same")

    def zero(step):
        step["layer0"]["attn_out"][...] = 0
    expect("a rank whose part is zero", 2, "llama.h5", "--shard", *p[:5], edited(p[5], "wrong.h5", zero), *keep,
           says="is zero everywhere, but not on the other ranks: it is not a partial sum")

    def noisy(step):
        step["layer0"]["attn_out"][...] += 0.5
    expect("replicas that are no partial sums", 2, "llama.h5", "--shard", *p[:5], edited(p[5], "wrong.h5", noisy),
           *keep, says="not a partial sum, because the residual stream after it")

    def marked(to, **run):
        with open(p[5], "rb") as a, open(to, "wb") as b:
            b.write(a.read())
        with h5py.File(to, "r+") as f:
            for key, value in run.items():
                (f if key == "complete" else f["run"]).attrs[key] = value
        return to
    expect("an incomplete rank", 2, "llama.h5", "--shard", *p[:5], marked("wrong.h5", complete=0), *keep,
           says="is incomplete")
    expect("a rank of another precision", 2, "llama.h5", "--shard", *p[:5], marked("wrong.h5", precision="bf16"), *keep,
           says="not ranks of one run")
    q = write_ranks("llama", g, 2, numbered=False)
    expect("a rank missing, and none says of how many", 2, "llama.h5", "--shard",
           *write_ranks("llama", g, 3, numbered=False)[:2], *keep, says="is a rank missing?")

    def gathered(step):
        del step["logits"]
        step.create_dataset("logits", data=g["logits"][0]).attrs["axes"] = "token vocab"

    def last(step):
        del step["logits"]
        step.create_dataset("logits", data=g["logits"][0][-1:]).attrs["axes"] = "token vocab"

    def without(step):
        del step["logits"]
    q = write_ranks("llama", g, 2, numbered=False)
    expect("logits that no rank gathered", 1, "llama.h5", "--shard", *q, *bare,
           says="logits (256 + 256): every rank has a shard of the vocabulary, and no rank has all of it")
    expect("logits that no rank gathered, allowed", 0, "llama.h5", "--shard", *q, *keep, "--strict",
           says="is not recorded: allowed (ranks)")

    def vocabulary(first, end):
        def cut(step):
            del step["logits"]
            step.create_dataset("logits", data=g["logits"][0][:, first:end]).attrs["axes"] = "token vocab"
        return cut
    uneven = edited(q[0], "a.h5", vocabulary(0, 300)), edited(q[1], "b.h5", vocabulary(300, 512))
    expect("logits in uneven shards", 0, "llama.h5", "--shard", *uneven, *keep,
           says="logits: ranks differ in shape along vocab: rank 0 has 300, rank 1 has 212 (300 + 212)")
    uneven = edited(q[0], "a.h5", vocabulary(0, 300)), edited(q[1], "b.h5", vocabulary(256, 512))
    expect("logits in uneven shards that overlap", 2, "llama.h5", "--shard", *uneven, *keep,
           says="2 ranks have 556 of 512 along vocab of logits together (300 + 256)")

    def fewer(step):
        step["logits"].attrs["axes"] = "token vocab"
        a = step["logits"][:-1]
        del step["logits"]
        step.create_dataset("logits", data=a).attrs["axes"] = "token vocab"
    expect("ranks with logits of other tokens", 2, "llama.h5", "--shard", q[0], edited(q[1], "b.h5", fewer), *keep,
           says="ranks may differ only along vocab")

    def narrow(first, end):
        def cut(step):
            for name in ("gate_proj", "up_proj", "mlp_act"):
                a = g[f"layer0.{name}"][0][:, first:end]
                del step["layer0"][name]
                step["layer0"].create_dataset(name, data=a).attrs["axes"] = "token ffn"
        return cut
    wide = g["layer0.gate_proj"][0].shape[1]
    uneven = edited(q[0], "a.h5", narrow(0, 50)), edited(q[1], "b.h5", narrow(50, wide))
    expect("uneven shards of the feed-forward", 0, "llama.h5", "--shard", *uneven, *keep,
           says=f"gate_proj: ranks differ in shape along ffn: rank 0 has 50, rank 1 has {wide - 50} (50 + {wide - 50})")
    expect("logits gathered on all ranks", 0, "llama.h5", "--shard", edited(q[0], "a.h5", gathered),
           edited(q[1], "b.h5", gathered), *keep, "--strict")

    def uneven_everywhere(first, end):
        def cut(step):
            for layer in range(2):
                for name in ("gate_proj", "up_proj", "mlp_act", "q_proj", "attn_context"):
                    a, axes = g[f"layer{layer}.{name}"]
                    heads = "head" in axes.split()
                    del step[f"layer{layer}"][name]
                    step[f"layer{layer}"].create_dataset(name, data=a[:, (0 if first == 0 else 2) if heads
                                                                      else first : (2 if first == 0 else None) if heads
                                                                      else end]).attrs["axes"] = axes
        return cut
    uneven = edited(q[0], "a.h5", uneven_everywhere(0, 50)), edited(q[1], "b.h5", uneven_everywhere(50, wide))
    expect("many uneven shards, and logits in shards", 1, "llama.h5", "--shard", *uneven, *bare, "--strict",
           says="logits (256 + 256): every rank")
    expect("many uneven shards: what is not said is counted", 0, "llama.h5", "--shard", *uneven, *keep,
           says="2 more notes on how tensors were joined are left out")
    expect("logits on one rank alone", 0, "llama.h5", "--shard", edited(q[0], "a.h5", gathered),
           edited(q[1], "b.h5", without), *keep, says="whole on rank 0")
    expect("the last token's logits on one rank alone", 0, "llama.h5", "--shard", edited(q[0], "a.h5", last),
           edited(q[1], "b.h5", without), *keep,
           says="1 tensor of the candidate has one row (first: logits)")
    expect("part of the logits on one rank alone", 2, "llama.h5", "--shard", q[0], edited(q[1], "b.h5", without), *keep,
           says="along vocab")
    expect("one rank alone", 2, "llama.h5", "--shard", p[0], says="two ranks or more")
    few_replicas(g, bare)


def few_replicas(g, keep):
    """Every rank holds the whole residual stream: only the files' rank attributes show that some
    ranks are missing."""
    some = {n: v for n, v in g.items() if n.endswith(("embed", "attn_residual", "output", "final_norm"))}
    ref = "stream.h5"
    with Foreign(ref, IDS) as f:
        for name, (a, axes) in some.items():
            f.put(name, a, axes)

    def ranks_of(w, **facts):
        paths = write_ranks("stream", some, w, numbered=False)
        for r, path in enumerate(paths):
            with h5py.File(path, "r+") as f:
                f["run"].attrs.update({key: r if value is None else value for key, value in facts.items()})
        return paths
    p = ranks_of(4, world_size=4)
    expect("replicas of 4 ranks", 0, ref, "--shard", *p, *keep, says="4 ranks; 0 tensors joined")
    expect("replicas, 2 of 4 by their number alone", 2, ref, "--shard", *p[:2], *keep,
           says="is one of 4 ranks, 2 are given")
    expect("one of 4 by their number alone", 2, ref, p[1], *keep,
           says="the candidate is one of 4; compare all of them with --shard")
    p = ranks_of(4, rank=None)
    expect("replicas, 2 of nobody knows how many", 0, ref, "--shard", *p[:2], *keep,
           says="no recording states the number of ranks (world_size)")
    expect("a rank that says no more", 2, ref, p[1], *keep, says="the candidate is rank 1 of several")
    p = ranks_of(2, rank=None, world_size=2)
    expect("a rank by itself", 2, ref, p[1], *keep,
           says="the candidate is rank 1 of 2; compare all of them with --shard")
    expect("a rank by itself as the reference", 2, p[0], ref, *keep,
           says="the reference is rank 0 of 2; compare all of them with --shard")
    expect("a rank by itself, allowed", 0, ref, p[1], "--limits", "fp32.yaml", "--allow", "ranks",
           says="allowed (ranks)")

    def without(step):
        del step["layer1"]["attn_residual"]
    lost = edited(p[1], "lost.h5", without)
    expect("a replica that a rank does not have", 2, ref, "--shard", p[0], lost, *keep,
           says="has no layer1.attn_residual in step 0, which every rank should have")
    expect("a replica that a rank does not have, allowed", 0, ref, "--shard", p[0], lost, "--limits", "fp32.yaml",
           "--allow", "replicas",
           says="layer1.attn_residual: whole on rank 0 but not on rank 1")
    for value in (-1, 1.5, "zero"):
        p = ranks_of(2, rank=value)
        expect(f"a rank that is {value}", 2, ref, "--shard", *p, *keep,
               says=f"/run: rank is {value}, not a whole number from 0")


def reports_name_every_rank():
    """In every form of report; also where their paths together are longer than a line."""
    global bad
    p = write_ranks("qwen2", golden("qwen2"), 6)
    one, many = ["d" * 200] * 6, [str(i) * 200 for i in range(6)]
    for folder in {*one, *many}:
        os.mkdir(folder)
    forms = ("txt", "json", "xml", "md", "html")
    for what, folders, said, where in (("here", None, p, forms), ("in one folder", one, p, forms),
                                       ("in six", many, [f"{d}/{x}" for d, x in zip(many, p)],
                                        ("txt", "json", "html"))):
        paths = [shutil.copy(x, f"{folders[i]}/{x}") for i, x in enumerate(p)] if folders else p
        out = [f"named.{form}" for form in forms]
        r = run("compare", "qwen2.h5", "--shard", *paths, "--allow", "missing", "--limits", "fp32.yaml", "--points",
                "layer0.attn_norm", "--force",
                "--format", "text", *[x for o in out for x in ("-o", o)])
        lacks = [f"named.{form}: {x}" for form in where for x in said if x not in read(f"named.{form}")]
        good = r.returncode == 0 and not lacks
        bad += not good
        print(f"{'ok' if good else 'BAD':4} reports name 6 ranks, {what}" + "".join(f"\n     not in {x}" for x in lacks)
              + r.stderr)


def loose_ends():
    """Copies that differ, axes that are not so, the last row alone."""
    keep = ["--allow", "missing", "--limits", "fp32.yaml"]
    hf = os.path.join(FIXTURES, "foreign", "hf-llama.h5")

    def other(step):
        step["model.layers.1.mlp"][0, 3, 5] += 1
    expect("two names of one result that differ", 2, "llama.h5", edited(hf, "bad.h5", other), "--names", "hf", *keep,
           says="both become layer1.down_proj")

    def last(step):
        for name in ("lm_head", "logits"):
            a = step[name][()]
            del step[name]
            step.create_dataset(name, data=a[:, -1:])
    expect("logits of the last token", 0, "llama.h5", edited(hf, "last.h5", last), "--names", "hf", *keep,
           says="taken as the last token")
    expect("the last token as the reference", 0, "last.h5", "llama.h5", "--ref-names", "hf", "--allow", "extra",
           "--limits", "fp32.yaml", says="taken as the last token")
    expect("the last token, with a floor", 0, "llama.h5", "last.h5", "--names", "hf", "--allow", "missing", "--model",
           os.path.join(FIXTURES, "llama-trained"))

    def first(step):
        last(step)
        step["logits"][...] = step["lm_head"][...] = h5py.File(hf, "r")["step.0/logits"][:, :1]
    expect("logits of the first token", 1, "llama.h5", edited(hf, "bad.h5", first), "--names", "hf", *keep)

    g = golden("llama")
    with Foreign("mine.h5", IDS) as f:
        for layer in range(2):
            f.put(f"mine.{layer}.ao", g[f"layer{layer}.attn_out"][0])
            f.put(f"mine.{layer}.junk", 1000 + g[f"layer{layer}.attn_out"][0])
    for rule, status, says in (
        ('to: "layer{n}.attn_out"', 0, ""), ('to: "layer{n}.attn_out", axes: "token (head 7)"', 1, "misshapen"),
        ('to: "layer{n}.attn_out", axes: "token head dim"', 1, "misshapen"),
        ('to: "layer{n}.attn_out", axes: "token hidden", plus: ["mine.{n}.junk"]', 1, "outside"),
        ('to: "layer{n}.attn_out", axes: "token head dim", plus: ["mine.{n}.junk"]', 2, "is not 'token head dim'"),
    ):
        with open("mine.yaml", "w", encoding="utf-8") as f:
            f.write('version: 1\nrules:\n  - { from: "mine.{n}.ao", ' + rule
                    + ' }\n  - { from: "*junk", ignore: true }\n')
        expect(f"a map: {rule[23:] or 'plain'}"[:52], status, "llama.h5", "mine.h5", "--names", "mine.yaml", *keep,
               "--points", "layer*.attn_out", says=says)


# ---- pages -------------------------------------------------------------------------------


def put_pages(f, g, layer, which, order, slots, table):
    a = g[f"layer{layer}.{dict(k='k_rope', v='v_proj')[which]}"][0]  # what the cache holds: key kv_head dim
    pages = rng.standard_normal((len(table) + 3, slots) + a.shape[1:]).astype("f4")
    for p in range(a.shape[0]):
        pages[table[p // slots], p % slots] = a[p]
    words = ("block", "slot", "kv_head", "dim")
    f.put(f"layer{layer}.{which}_cache", pages.transpose(order), " ".join(words[i] for i in order))


def pages():
    keep = ["--limits", "fp32.yaml", "--points", "layer*.{k,v}_cache"]
    g = golden("qwen2")
    for slots, order in ((4, (0, 1, 2, 3)), (16, (0, 2, 1, 3)), (5, (2, 0, 1, 3))):
        table = rng.permutation((T + slots - 1) // slots + 2)[: (T + slots - 1) // slots].astype("i4")
        with Foreign("paged.h5", IDS) as f:
            for layer in range(2):
                for which in "kv":
                    put_pages(f, g, layer, which, order, slots, table)
            f.put("block_table", table, "block")
        expect(f"blocks of {slots}, {order}", 0, "qwen2.h5", "paged.h5", *keep, least=4,
               says="gathered from their blocks")

    def reversed_table(step):
        step["block_table"][...] = step["block_table"][()][::-1]
    expect("a table in another order", 1, "qwen2.h5", edited("paged.h5", "bad.h5", reversed_table), *keep)

    def outside(step):
        step["block_table"][1] = 99
    expect("a block that is not there", 2, "qwen2.h5", edited("paged.h5", "bad.h5", outside), *keep,
           says="block 1 has number 99; only")

    def none(step):
        del step["block_table"]
    expect("no table", 2, "qwen2.h5", edited("paged.h5", "bad.h5", none), *keep, says="has no block_table")

    def short(step):
        t = step["block_table"][()]
        del step["block_table"]
        step.create_dataset("block_table", data=t[:1])
    expect("too short a table", 2, "qwen2.h5", edited("paged.h5", "bad.h5", short), *keep, says="do not hold 17 tokens")


def caches():
    """Caches of more than one layer, or of keys and values, in one tensor, by a map."""
    g = golden("qwen3")
    keep = ["--limits", "fp32.yaml", "--points", "layer*.{k,v}_cache"]
    kv = np.stack([[g[f"layer{n}.{p}"][0] for p in ("k_rope", "v_proj")] for n in range(2)])  # layer kv key kv_head dim
    slots, table = 4, rng.permutation(7)[:5].astype("i4")
    pages = rng.standard_normal((2, 2, 8, slots) + kv.shape[3:]).astype("f4")
    for p in range(T):
        pages[:, :, table[p // slots], p % slots] = kv[:, :, p]
    heads_first = kv.transpose(0, 1, 3, 2, 4)
    both = 'parts: ["layer{n}.k_cache", "layer{n}.v_cache"], along: kv'

    def case(what, status, rules, tensors, says=""):
        with open("caches.yaml", "w", encoding="utf-8") as f:
            f.write("version: 1\nrules:\n" + "".join(f"  - {{ {r} }}\n" for r in rules))
        with Foreign("caches.h5", IDS) as f:
            for name, a in tensors.items():
                f.put(name, a)
        expect(what, status, "qwen3.h5", "caches.h5", "--names", "caches.yaml", *keep, least=0 if status > 1 else 4,
               says=says)

    one = [f'from: "cache.{{n}}.{p}", to: "layer{{n}}.{p}_cache", axes: "batch kv_head key dim"' for p in "kv"]
    case("caches of heads first", 0, one,
         {f"cache.{n}.{p}": heads_first[n, i][None] for n in range(2) for i, p in enumerate("kv")})
    layers = [f'from: "{p}", to: "layer{{n}}.{p}_cache", each: layer, axes: "layer batch kv_head key dim"'
              for p in "kv"]
    case("caches with a layer axis", 0, layers, {p: heads_first[:, i][:, None] for i, p in enumerate("kv")})
    case("caches with a layer axis, layers swapped", 1, layers,
         {p: heads_first[::-1, i][:, None] for i, p in enumerate("kv")})
    case("caches with a layer axis and no batch", 2, layers, {p: heads_first[:, i] for i, p in enumerate("kv")},
         says="the shape of k is not")
    stacked = [f'from: "cache.{{n}}", {both}, axes: "kv batch key kv_head dim"']
    case("keys and values in one", 0, stacked, {f"cache.{n}": kv[n][:, None] for n in range(2)})
    case("values and keys in one", 1, stacked, {f"cache.{n}": kv[n, ::-1][:, None] for n in range(2)})
    case("all of them in one", 0, [f'from: past, {both}, each: layer, axes: "layer kv batch kv_head key dim"'],
         {"past": heads_first[:, :, None]})
    case("keys and values in one, three of them", 2, stacked,
         {f"cache.{n}": kv[n, [0, 1, 1]][:, None] for n in range(2)}, says="has 3 numbers along kv")
    paged = [f'from: "cache.{{n}}", {both}, axes: "kv block slot kv_head dim"']
    case("keys and values in blocks", 0, paged, {**{f"cache.{n}": pages[n] for n in range(2)}, "block_table": table},
         says="4 caches gathered from their blocks")
    case("all of them in blocks", 0, [f'from: past, {both}, each: layer, axes: "layer kv block slot kv_head dim"'],
         {"past": pages, "block_table": table})
    case("blocks with no table", 2, paged, {f"cache.{n}": pages[n] for n in range(2)}, says="has no block_table")
    case("seven axes", 2, one, {"cache.0.k": heads_first[:, :, None, None]}, says="cache.0.k: rank 7, more than 6")
    case("each of an axis in a group", 2,
         ['from: past, to: "layer{n}.k_cache", each: layer, axes: "(layer key) kv_head dim"'], {"past": kv[0, 0]},
         says="caches.yaml:3:5: each is not one of axes, or is part of one")
    case("each beside a layer", 2, ['from: "cache.{n}", to: "layer{n}.k_cache", each: layer, axes: '
                                    '"layer key kv_head dim"'], {"cache.0": kv[:, 0]},
         says="caches.yaml:3:5: each gives the value of {n}, so from must not contain {n}")


# ---- batches -----------------------------------------------------------------------------


def batched(a, axes, row, rows, pad, left):
    """a as row `row` of a batch whose other rows, and whose padding, hold anything."""
    out = []
    for word, n in zip(axes.split(), a.shape):
        out.append(n + pad if word in ("token", "key") else n)
    whole = rng.standard_normal((rows, *out)).astype("f4")
    where = tuple(slice(pad, None) if left and word in ("token", "key") else slice(0, n) for word,
                  n in zip(axes.split(), a.shape))
    whole[(row, *where)] = a
    return whole, "batch " + axes


def batches():
    g = {n: v for n, v in golden("qwen3").items() if v[0].ndim < 4}
    for left in (True, False):
        ids = rng.integers(0, 500, (3, T + 4))
        positions = np.tile(np.arange(T + 4), (3, 1))
        real = slice(4, None) if left else slice(0, T)
        ids[1, real], positions[1] = IDS, -1
        positions[1, real] = np.arange(T)
        with Foreign("batch.h5", ids, positions) as f:
            for name, (a, axes) in g.items():
                f.put(name, *batched(a, axes, 1, 3, 4, left))
        side = "left" if left else "right"
        keep = ["--allow", "missing", "--limits", "fp32.yaml"]
        expect(f"a row of a batch padded on the {side}", 0, "qwen3.h5", "batch.h5", "--batch-row", "1", *keep,
               least=len(g) - 4)
        expect(f"another row of it, {side}", 2, "qwen3.h5", "batch.h5", "--batch-row", "0", *keep,
               says="token ids: 17 in the reference, 21")
        expect(f"no row of it, {side}", 2, "qwen3.h5", "batch.h5", *keep, says="--batch-row 0 to 2")
        expect(f"a row beyond it, {side}", 2, "qwen3.h5", "batch.h5", "--batch-row", "3", *keep, says="has no row 3")
    with Foreign("one.h5", [IDS], [np.arange(T)]) as f:
        for name, (a, axes) in g.items():
            f.put(name, a[None], "batch " + axes)
    expect("two batches", 0, "batch.h5", "batch.h5", "--batch-row", "1", "--ref-batch-row", "1", "--allow", "itself",
           "--limits", "fp32.yaml", least=len(g) - 4)
    expect("two rows", 2, "batch.h5", "batch.h5", "--batch-row", "1", "--ref-batch-row", "0", says="token ids")
    expect("a batch of one", 0, "qwen3.h5", "one.h5", *keep, least=len(g) - 4)


def padding_seen():
    """The last layer's attention sees the padding's own keys, and the run ends with it."""
    g, pad, at = golden("qwen3"), 4, "layer1."
    last = ("attn_norm", "q_proj", "k_proj", "v_proj", "q_norm", "k_norm", "q_rope", "k_rope", "attn_context")
    kept = {n: v for n, v in g.items() if n.startswith("layer0.") or n in ("embed", *(at + point for point in last))}
    positions = np.array([np.arange(T + pad), [-1] * pad + list(range(T))])
    ids = np.array([rng.integers(0, 500, T + pad), [0] * pad + IDS])
    whole = {n: batched(a, axes, 1, 2, pad, True) for n, (a, axes) in kept.items()}
    q, k, v = (whole[at + n][0][1].astype("f8") for n in ("q_rope", "k_rope", "v_proj"))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = np.einsum("ihd,jhd->hij", q, k) * q.shape[2] ** -0.5
    p = np.exp(np.where(np.tri(T + pad, dtype=bool), s, -np.inf))
    whole[at + "attn_context"][0][1] = np.einsum("hij,jhd->ihd", p / p.sum(-1, keepdims=True), v)
    with Foreign("batch.h5", ids, positions) as f:
        for name, (a, axes) in whole.items():
            f.put(name, a, axes)
    expect("padding that is seen", 1, "qwen3.h5", "batch.h5", "--batch-row", "1", "--allow", "missing", "--limits",
           "fp32.yaml",
           "--model", os.path.join(FIXTURES, "qwen3-trained"), "--explain", says="padding keys of the batch are seen")


def packed():
    """Prompts one after the other, as in engines with a continuous batch; then a step with a token of each."""
    g = golden("qwen3")
    keep = ["--allow", "missing", "--limits", "fp32.yaml"]
    before, behind = 6, 9  # tokens of the prompts around ours
    n = before + T + behind
    other = lambda k: list(rng.integers(0, 500, k))
    ids = other(before) + IDS + other(behind)
    positions = [*range(before), *range(T), *range(behind)]

    def around(a, axes, last=False):
        if last:
            return rng.standard_normal((3, a.shape[-1])).astype("f4") * [[1], [0], [1]] + [[0], [1], [0]] * a[-1]
        whole = rng.standard_normal([n if w in ("token", "key") else k for w,
                                     k in zip(axes.split(), a.shape)]).astype("f4")
        whole[tuple(slice(before, before + T) if w in ("token", "key") else slice(None) for w in axes.split())] = a
        return whole

    def write(path, ids, positions, last=False):
        with Foreign(path, ids, positions) as f:
            for name, (a, axes) in g.items():
                a = around(a, axes, last and name == "logits")
                f.put(name, a[None] if np.ndim(ids) == 2 else a.astype("f4"), "batch " * (np.ndim(ids) == 2) + axes)
            for layer in range(2):
                f.put(f"layer{layer}.k_cache", around(g[f"layer{layer}.k_rope"][0], "key kv_head dim"),
                      "key kv_head dim")

    write("packed.h5", ids, positions)
    expect("one of three prompts in a row", 0, "qwen3.h5", "packed.h5", "--batch-row", "1", *keep, least=len(g))
    expect("another of them", 2, "qwen3.h5", "packed.h5", "--batch-row", "2", *keep,
           says="token ids: 17 in the reference, 9 in the candidate")
    expect("one beyond them", 2, "qwen3.h5", "packed.h5", "--batch-row", "3", *keep, says="a batch of 3 has no row 3")
    expect("all of them", 0, "packed.h5", "packed.h5", "--allow", "itself", "--limits", "fp32.yaml", least=len(g),
           says="3 prompts one after another, compared as they are")
    expect("one as the reference", 0, "packed.h5", "qwen3.h5", "--ref-batch-row", "1", "--allow", "extra", "--limits",
           "fp32.yaml", least=len(g))

    def leaks(step):  # the first key of the prompt before in place of ours
        a = step["layer1"]["k_cache"]
        a[before] = a[0]
    expect("a key of the prompt before", 1, "qwen3.h5", edited("packed.h5", "bad.h5", leaks), "--batch-row", "1", *keep,
           says="layer1.k_cache")
    write("packed.h5", ids, positions, last=True)
    expect("logits of the last token of each", 0, "qwen3.h5", "packed.h5", "--batch-row", "1", *keep, least=len(g),
           says="taken as the last token")
    expect("of another prompt's", 1, "packed.h5",
           edited("packed.h5", "bad.h5", lambda s: s["logits"].__setitem__(1, s["logits"][0])), "--ref-batch-row", "1",
           "--batch-row", "1", *keep, says="logits")
    write("packed.h5", [ids], [positions])
    expect("three prompts in a batch of one", 0, "qwen3.h5", "packed.h5", "--batch-row", "1", *keep, least=len(g) - 2)

    # Decoding: a step of one token each, then positions that are of none of the prompts.
    model = os.path.join(FIXTURES, "qwen3-trained")
    run("capture", "ref", model, "--ids", f"@{FIXTURES}/prompts/p017.ids", "--force-ids", "5,9", "--points", "*.q_rope",
        "-o", "steps.h5", "--force")
    with h5py.File("steps.h5", "r") as s, Foreign("packed.h5", ids + [7, 5, 8, 7, 9, 8],
                                                  positions + [before, T, behind, before + 1, T + 1, behind + 1]) as f:
        for k in range(3):
            step = f.f.require_group(f"step.{k}")
            step.attrs.update(position=n + 3 * (k - 1) if k else 0, tokens=3 if k else n)
            for layer in range(2):
                a = s[f"step.{k}/layer{layer}/q_rope"][()]
                whole = rng.standard_normal((3 if k else n, *a.shape[1:])).astype("f4")
                whole[1 if k else before:][:len(a)] = a
                step[f"layer{layer}/q_rope"] = whole
    expect("one of three that decode", 0, "steps.h5", "packed.h5", "--batch-row", "1", *keep, least=6)

    def astray(step):
        step.file["run/positions"][n + 4] = 3
    expect("a step of other prompts", 2, "steps.h5", edited("packed.h5", "bad.h5", astray), "--batch-row", "1", *keep,
           says="/step.2: its tokens do not continue the 3 prompts")


# ---- dumps of Python packages (fixtures/packages.py) ----------------------------------


PACKAGES = {"mlx": ("qwen2", 33), "ort-genai": ("qwen3", 38), "keras-hub": ("qwen2", 33), "litgpt": ("qwen2", 29),
            "torchtune": ("qwen2", 29), "hidden_states": ("qwen2", 6)}
SWAPPED = {"mlx": "model.layers.1.self_attn.{k,v}_proj", "ort-genai": "present.1.{key,value}",
           "keras-hub": "transformer_layer_1/self_attention/{key,value}", "litgpt": "transformer.h.1.mlp.fc_{1,2}",
           "torchtune": "layers.1.mlp.w{1,3}", "hidden_states": "hidden_states.{0,1}"}


def dumps_of_packages():
    global bad
    for name, (family, least) in PACKAGES.items():
        model, dump = (os.path.join(FIXTURES, *at) for at in ((f"{family}-trained",), ("foreign", f"{name}.npz")))
        tensors = dict(np.load(dump))
        few = os.path.getsize(dump) <= 100_000
        bad += not few
        run("capture", "ref", model, "--ids", ",".join(map(str, IDS[:tensors["logits"].shape[1]])), "--points", "*",
            "-o", "ref.h5", "--force")
        r = run("import", dump, "--names", name, "--model", model, "--ids-from", "ref.h5", "-o", "good.h5", "--force")
        bad += r.returncode != 0 or "warning" in r.stderr
        keep = ["ref.h5", "--allow", "missing", "--limits", "fp32.yaml"]
        expect(f"{name}'s names{'' if few else ', TOO LARGE'}", 0, keep[0], "good.h5", *keep[1:], least=least)
        left, right = SWAPPED[name][:-1].split("{") if SWAPPED[name].endswith("}") else SWAPPED[name].split("{")
        words, tail = right.split("}") if "}" in right else (right, "")
        a, b = (left + w + tail for w in words.split(","))
        tensors[a], tensors[b] = tensors[b], tensors[a]
        np.savez("bad.npz", **tensors)
        run("import", "bad.npz", "--names", name, "--model", model, "--ids-from", "ref.h5", "-o", "bad.h5", "--force")
        expect(f"{name}, two swapped", 1, keep[0], "bad.h5", *keep[1:])
        # And without a map.
        r = run("import", dump, "--like", "ref.h5", "-o", "like.h5", "--force", "--strict")
        bad += r.returncode != 0
        expect(f"{name}, names by the numbers", 0, keep[0], "like.h5", *keep[1:], least=least)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    as_they_come()
    dumps_of_packages()
    vllm()
    ranks()
    reports_name_every_rank()
    loose_ends()
    pages()
    caches()
    batches()
    padding_seen()
    packed()
print("all agree" if not bad else f"{bad} do not")
sys.exit(bad > 0)
