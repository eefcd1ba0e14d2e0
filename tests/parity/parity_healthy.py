"""parity_healthy.py VERNIER [--short | --sample EVERY | --random SECONDS | --part FIRST COUNT]: healthy runs of
transformers, of which only a part was saved, in mixed formats, or in another container, and whose precision nobody
declares.

None may be outside its limits, and none accused. Runs: seven trained families and models of 2 to 48 layers; logits,
hidden states, some layers, the last row, all checkpoints, and decodes; float32, float16 and bfloat16; bfloat16 and
float16 saved as float32, float32 as float64; caches in float16, bfloat16 and q8_0; products in bfloat16 and TF32 with
float32 results; 8-bit caches of 16-bit runs; caches of the prompt alone; logits in float32 behind 16 bits. Beside them:
a format in one layer only, and small faults in logits alone, which must be outside. The last lines count, and say how
often the policy named is the one that was run.
"""
import collections
import json
import os
import random
import shlex
import shutil
import sys
import tempfile
import time

import h5py
import numpy as np
import parity_partial
import record_help
from needs_transformers import torch, transformers
from parity_partial import TEXT, WORD, load, make
from record_help import BF16, F16, F32, FAMILIES, model_of
from torch.overrides import TorchFunctionMode

parity_partial.SHAPES.update({
    "two": ("qwen2", {"num_hidden_layers": 2}),
    "eight": ("mistral", {"num_hidden_layers": 8, "hidden_size": 96, "head_dim": 32, "sliding_window": 48}),
    "deepest": ("llama", {"num_hidden_layers": 48, "hidden_size": 64, "intermediate_size": 128, "head_dim": 16}),
})


# ---- engines that mix formats

def as_f16(t):
    return t.to(F16).to(t.dtype)


def as_bf16(t):
    return t.to(BF16).to(t.dtype)


def as_tf32(t):
    """Ten bits after the leading one, ties to even."""
    bits = t.detach().contiguous().view(torch.int32)
    return ((bits + 0xfff + ((bits >> 13) & 1)) & ~0x1fff).view(F32)


def as_q8_0(t):
    """Blocks of 32 of the heads of a token, side by side; t is (batch, heads, tokens, width)."""
    rows = t.float().transpose(1, 2).flatten(2)
    blocks = torch.nn.functional.pad(rows, (0, -rows.shape[-1] % 32)).unflatten(-1, (-1, 32))
    most = blocks.abs().amax(-1, keepdim=True)
    whole = torch.where(most > 0, (blocks * (127 / most)).round(), torch.zeros_like(blocks))
    back = ((most / 127).to(F16).float() * whole).flatten(-2)[..., :rows.shape[-1]]
    return back.unflatten(-1, (t.shape[1], t.shape[3])).transpose(1, 2).to(t.dtype)


def as_int8(t):
    """A scale for each token and head. In 16 bits many numbers are half the largest one, that is 63.5 scales."""
    scale = (t.float().abs().amax(-1, keepdim=True) / 127).clamp(min=1e-8)
    return ((t.float() / scale).round() * scale).to(t.dtype)


def as_int8_token(t):
    """A scale for each token."""
    scale = (t.float().abs().amax((1, 3), keepdim=True) / 127).clamp(min=1e-8)
    return ((t.float() / scale).round() * scale).to(t.dtype)


def as_f8_scaled(t):
    scale = (t.float().abs().amax(-1, keepdim=True) / 448).clamp(min=1e-12)
    return ((t.float() / scale).to(torch.float8_e4m3fn).float() * scale).to(t.dtype)


class Products(TorchFunctionMode):
    """Every product rounds its operands, but not those inside sdpa; results stay as they are."""

    def __init__(self, narrow, only=lambda number: True):
        super().__init__()
        self.narrow, self.only, self.number = narrow, only, 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        which = {torch.nn.functional.linear: (0, 1), torch.matmul: (0, 1), torch.addmm: (1, 2)}.get(func)
        if which:
            self.number += 1
            if self.only(self.number):
                args = [self.narrow(a) if i in which else a for i, a in enumerate(args)]
        return func(*args, **(kwargs or {}))


class NarrowCache(transformers.DynamicCache):
    """prompt_as_is: the first call attends to its keys and values before they are rounded. of_prompt: only those of
    the first call are rounded."""

    def __init__(self, config, narrow, only=None, prompt_as_is=False, of_prompt=False):
        super().__init__(config=config)
        self.narrow, self.only_layer, self.prompt_as_is, self.of_prompt = narrow, only, prompt_as_is, of_prompt

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        own = key_states, value_states
        first = not self.get_seq_length(layer_idx)
        as_is = self.prompt_as_is and first
        if self.only_layer in (None, layer_idx) and (first or not self.of_prompt):
            key_states, value_states = self.narrow(key_states), self.narrow(value_states)
        read = super().update(key_states, value_states, layer_idx, *args, **kwargs)
        return own if as_is else read


class Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *args):
        return False


Engine = collections.namedtuple("Engine", "word dtype container products cache")
ENGINES = [
    Engine("f32", F32, None, None, None),
    Engine("f16", F16, None, None, None),
    Engine("bf16", BF16, np.float32, None, None),
    Engine("f16", F16, np.float32, None, None),
    Engine("f32", F32, np.float64, None, None),
    Engine("f32,cache=f16", F32, None, None, as_f16),
    Engine("f32,cache=bf16", F32, None, None, as_bf16),
    Engine("f32,cache=q8_0", F32, None, None, as_q8_0),
    Engine("f32,products=bf16", F32, None, as_bf16, None),
    Engine("f32,products=tf32", F32, None, as_tf32, None),
    Engine("f32,products=bf16", F32, np.float64, as_bf16, None),
    Engine("f32,products=bf16,cache=f16", F32, None, as_bf16, as_f16),
]
EIGHT_BITS = [
    Engine("bf16,cache=int8", BF16, None, None, as_int8),
    Engine("f16,cache=int8", F16, None, None, as_int8),
    Engine("bf16,cache=q8_0", BF16, None, None, as_q8_0),
    Engine("f16,cache=q8_0", F16, None, None, as_q8_0),
    Engine("f32,cache=int8-token", F32, None, None, as_int8_token),
    Engine("bf16,cache=f8-scaled", BF16, None, None, as_f8_scaled),
    Engine("f32,cache=f16-prompt", F32, None, None, as_f16),
    Engine("bf16,cache=int8-prompt", BF16, None, None, as_int8),
]
SAVED = ("logits", "hidden", "some", "last", "all", "decode")


class Healthy(parity_partial.Partial):
    """Runs an engine, saves a part, and compares without a declared precision."""

    def __init__(self, program, folder):
        super().__init__(program, folder)
        self.named, self.accused = collections.Counter(), 0

    def inside(self, engine, model, saved):
        """The products of a run, and its cache."""
        products = Products(engine.products) if engine.products else Nothing()
        cache = engine.cache and NarrowCache(model.config, engine.cache, None, saved == "steps, prompt as it is",
                                             engine.word.endswith("-prompt"))
        return products, {"past_key_values": cache} if cache else {}

    def saved_run(self, engine, model, path, ids, saved, draw):
        products, more = self.inside(engine, model, saved)
        if saved == "all" or saved == "decode" or saved.startswith("steps"):
            n = {"all": 1, "decode": 6}.get(saved, 12)
            with torch.no_grad(), products, record_help.record(model, self.at("cand.h5"),
                                                               points="logits" if saved == "decode" else None):
                if saved != "all":
                    model.generate(torch.tensor([ids]), max_new_tokens=n, min_new_tokens=n, do_sample=False,
                                   pad_token_id=0, **more)
                else:
                    model(torch.tensor([ids]), **more)
            with h5py.File(self.at("cand.h5"), "r+") as f:
                f["run"].attrs["precision_from"] = "numbers"
            forced = ("--force-ids-from", self.at("cand.h5")) if saved != "all" else ()
            self.must("capture", "ref", path, "--ids-from", self.at("cand.h5"), *forced, "--force", "-o",
                      self.at("ref.h5"))
            return self.judged(path)
        with torch.no_grad(), products:
            out = model(torch.tensor([ids]), output_hidden_states=True, **more)
        states = out.hidden_states
        found = {f"layer{i - 1}.output": states[i] for i in range(1, len(states) - 1)}
        found = {name: t[0] for name, t in found.items()} if saved != "logits" else {}
        if saved == "some":
            found = {name: found[name] for name in draw.sample(sorted(found), min(2, len(found)))}
        found.update({"logits": out.logits[0]} if saved != "last" else {"logits": out.logits[0][-1:]})
        container = engine.container or (np.float16 if engine.dtype is F16 else np.float32)
        np.savez(self.at("dump.npz"), **{name: t.float().numpy().astype(container) for name, t in found.items()})
        text = ",".join(map(str, ids))
        self.must("capture", "ref", path, "--ids", text, "--force", "-o", self.at("ref.h5"))
        self.must("import", self.at("dump.npz"), "--model", path, "--ids", text, "--force", "-o", self.at("cand.h5"))
        return self.judged(path)

    def undeclared(self, path, ids, logits):
        text = ",".join(map(str, ids))
        np.savez(self.at("dump.npz"), logits=logits.numpy())
        self.must("capture", "ref", path, "--ids", text, "--force", "-o", self.at("ref.h5"))
        self.must("import", self.at("dump.npz"), "--model", path, "--ids", text, "--force", "-o", self.at("cand.h5"))
        return self.judged(path)

    def count(self, what, done, status, engine, kind, attention="eager", word=None):
        """word: the precision to be named, if not one of roles."""
        if done.returncode not in (0, 1) or "replay stopped" in done.stdout:
            raise RuntimeError(f"{what}: {done.stderr}{done.stdout}")
        with open(self.at("report.json"), encoding="utf-8") as f:
            report = json.load(f)
        right = done.returncode == status
        self.good += right
        self.bad += not right
        self.kinds[kind][right] += 1
        said = next((w.split("--precision ")[1].split(" ")[0] for w in report["warnings"] if "--precision " in w), None)
        if status == 0:
            self.accused += len(report["origins"])
            ran = engine.word if attention == "eager" else engine.word.replace("products", "linear")
            right_name = (said or "") == (word or (ran if "," in ran else ""))
            self.named["as run" if right_name else f"{said or 'nothing'} for {ran}"] += 1
            if not right_name:
                print(f"{what}: named {said}", flush=True)
        if not right:
            print(f"{what}: exit status {done.returncode}, expected {status}; named {said}")
            print("   ", report["summary"], flush=True)


# Once called outside: model, engine, attention, tokens, where, what was saved.
ONCE_OUTSIDE = (("llama", "f32,products=bf16,cache=f16", "sdpa", 90, 386, "decode"),
                ("llama", "bf16,cache=int8", "eager", 90, 100, "all"),
                ("qwen2", "bf16,cache=q8_0", "eager", 90, 100, "all"))


def one(b, models, which, seed):
    """which: model, engine, attention, tokens, where, what is saved."""
    name, engine, attention, n, start, saved = which
    draw = random.Random(f"{seed} {name} {engine} {n} {start}")
    model = load(models[name], engine.dtype, attention)
    done = b.saved_run(engine, model, models[name], TEXT[start:start + n], saved, draw)
    kind = f"healthy, {saved}"
    b.count(f"{name}, {engine.word}{' widened' if engine.container else ''}, {attention}, {n} tokens from {start}, "
            f"{saved}", done, 0, engine, kind, attention)


def possible(name, engine, saved):
    """qwen3_5's cache holds states; a recording of all of 48 layers takes long."""
    if name == "qwen3_5_text" and engine.cache:
        return False
    if name in ("deepest", "deep", "deep-norms") and saved.startswith("steps"):
        return False
    return not (saved in ("all", "decode") and engine.container)


def all_runs(models, draw, every):
    runs = [(name, engine, saved) for name in sorted(models) for engine in ENGINES for saved in SAVED
            if possible(name, engine, saved)]
    runs += [(name, engine, saved) for name in sorted(models) for engine in EIGHT_BITS
             for saved in ("steps", "steps, prompt as it is") if possible(name, engine, saved)]
    draw.shuffle(runs)
    found = []
    for name, engine, saved in runs[::every]:
        attention = draw.choice(("eager", "sdpa"))
        found.append((name, engine, "eager" if name in parity_partial.CAPPED else attention,
                      draw.choice((12, 24, 40, 63, 90)), draw.randrange(1400), saved))
    return found


def once_outside(models):
    for name, word, *more in ONCE_OUTSIDE:
        yield (name, next(e for e in ENGINES + EIGHT_BITS if e.word == word), *more)


def one_layer(b, models):
    """A format in one layer or product only: never a policy."""
    for name in ("qwen2", "llama", "eight"):
        for what, products, cache in (("one product in bfloat16", as_bf16, None),
                                      ("the cache of one layer in float16", None, as_f16),
                                      ("the cache of one layer in int8", None, as_int8)):
            if name not in models:
                continue
            model = load(models[name], F32)
            engine = Engine("f32", F32, None, products, None)
            with torch.no_grad(), Products(products, lambda n: n == 5) if products else Nothing():
                more = {"past_key_values": NarrowCache(model.config, cache, 1)} if cache else {}
                with record_help.record(model, b.at("cand.h5")):
                    model(torch.tensor([TEXT[100:163]]), **more)
            with h5py.File(b.at("cand.h5"), "r+") as f:
                f["run"].attrs["precision_from"] = "numbers"
            b.must("capture", "ref", models[name], "--ids-from", b.at("cand.h5"), "--force", "-o", b.at("ref.h5"))
            b.count(f"{name}, {what}", b.judged(models[name]), 1, engine, "a format in one layer")


class ChangingCache(NarrowCache):
    """A cache that is read in a format in some calls: when(tokens before)."""

    def __init__(self, config, narrow, when):
        super().__init__(config, narrow, -1)
        self.when = when

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        before = self.get_seq_length(layer_idx)
        read = super().update(key_states, value_states, layer_idx, *args, **kwargs)
        return tuple(map(self.narrow, read)) if self.when(before) else read


def changes(b, models):
    """A format from some step on, or up to it, of more steps than the search looks at: no policy, but said."""
    for what, when in (("from step 38 on", lambda before: before >= 45), ("up to step 37", lambda before: before < 45),
                       ("in all steps, one of them wrong", lambda before: True)):
        model = load(models["qwen2"], F32)
        with torch.no_grad(), record_help.record(model, b.at("cand.h5")):
            model.generate(torch.tensor([TEXT[100:108]]), max_new_tokens=76, min_new_tokens=76, do_sample=False,
                           pad_token_id=0, past_key_values=ChangingCache(model.config, as_f16, when))
        with h5py.File(b.at("cand.h5"), "r+") as f:
            f["run"].attrs["precision_from"] = "numbers"
            if "wrong" in what:
                wrong = f["step.50/layer1/attn_context"]
                wrong[...] = 1.5 * wrong[...]
                del wrong.attrs["digest"]
        b.must("capture", "ref", models["qwen2"], "--ids-from", b.at("cand.h5"), "--force-ids-from", b.at("cand.h5"),
               "--force", "-o", b.at("ref.h5"))
        done = b.judged(models["qwen2"])
        with open(b.at("report.json"), encoding="utf-8") as f:
            said = [w for w in json.load(f)["warnings"] if w.startswith("from step ")]
        due = [] if "wrong" in what else ["from step 38 on"]
        b.say(f"a cache in float16 {what}", done.returncode == 1 and [w[:15] for w in said] == due, f"{said}")


def narrow_norms(b, models):
    """1/rms rounded to bfloat16: an error that each row has as a whole, below the limit of one number's."""
    model = load(models["llama"], BF16)
    for norm in model.modules():
        if type(norm).__name__.endswith("RMSNorm"):
            def narrow(x, norm=norm):
                factor = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + norm.variance_epsilon).to(BF16)
                return x * factor * norm.weight
            norm.forward = narrow
    with torch.no_grad(), record_help.record(model, b.at("cand.h5")):
        model(torch.tensor([TEXT[100:200]]))
    b.must("capture", "ref", models["llama"], "--ids-from", b.at("cand.h5"), "--force", "-o", b.at("ref.h5"))
    b.count("llama, 1/rms in bfloat16", b.judged(models["llama"]), 1, Engine("bf16", BF16, None, None, None),
            "norms in bfloat16")


def logits_alone(b, models):
    """The last product alone in float32, behind 16 bits; and faults of float32 that err as much as some format."""
    ids = TEXT[100:163]
    for name in sorted({"qwen2", "llama", "gpt2", "eight", "wide"} & set(models)):
        for dtype in (BF16, F16):
            model = load(models[name], dtype, "sdpa" if name == "qwen2" else "eager")
            with torch.no_grad():
                state = model(torch.tensor([ids]), output_hidden_states=True).hidden_states[-1]
                logits = state.float() @ model.lm_head.weight.float().T
            engine = Engine(WORD[dtype], dtype, None, None, None)
            b.count(f"{name}, {WORD[dtype]}, logits in float32", b.undeclared(models[name], ids, logits[0]), 0,
                    engine, "healthy, logits in float32", word=WORD[dtype])
        for fault in ("eps ten times larger in all norms", "one matrix times 1.001"):
            model = load(models[name], F32)
            parity_partial.FAULTS[fault][0](model)
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0]
            b.count(f"{name}, {fault}", b.undeclared(models[name], ids, logits), 1, ENGINES[0], "faults in logits")


def wide(b, folder, seed):
    """A vocabulary of which the search looks at a sample. Decodes: of more steps than it looks at, and of fewer."""
    parity_partial.SHAPES["wide"] = ("qwen2", {"num_hidden_layers": 2, "vocab_size": 9000})
    models = {"wide": make(folder, "wide")}
    logits_alone(b, models)
    for engine in ENGINES:
        if engine.cache or engine.products:
            for saved in ("logits", "decode") if not engine.cache else ("decode",):
                one(b, models, ("wide", engine, "eager", 60, 100, saved), seed)


def narrow_last(model):
    model.model.norm.register_forward_hook(lambda module, args, out: as_bf16(out))


def decoded_alone(b, models):
    """The same of decodes; beside them, a fault of float32 once taken for float16."""
    models = models if "experts" in models else {**models, "experts": make(b.folder, "experts")}

    def run(name, dtype, n, start, steps, fault=None, attention="eager"):
        model = load(models[name], dtype, attention)
        if fault:
            fault(model)
        head = model.lm_head.weight.float().T
        model.lm_head.forward = lambda x: x.float() @ head
        with torch.no_grad(), record_help.record(model, b.at("cand.h5"), points="logits"):
            model.generate(torch.tensor([TEXT[start:start + n]]), max_new_tokens=steps, min_new_tokens=steps,
                           do_sample=False, pad_token_id=0)
        with h5py.File(b.at("cand.h5"), "r+") as f:
            f["run"].attrs["precision_from"], f["run"].attrs["precision"] = "numbers", "f32"
        b.must("capture", "ref", models[name], "--ids-from", b.at("cand.h5"), "--force-ids-from", b.at("cand.h5"),
               "--force", "-o", b.at("ref.h5"))
        return b.judged(models[name])

    for name, dtype, *where in (("qwen3_5_text", BF16, 24, 0, 12), ("qwen3_5_text", F16, 130, 20, 6),
                                ("gemma2", BF16, 24, 0, 3), ("llama", F16, 24, 0, 2), ("llama", BF16, 9, 700, 2),
                                ("experts", BF16, 9, 700, 2), ("experts", BF16, 24, 100, 3)):
        attention = "sdpa" if name == "llama" else "eager"
        b.count(f"{name}, {WORD[dtype]}, decode of {where}, logits in float32",
                run(name, dtype, *where, attention=attention), 0, Engine(WORD[dtype], dtype, None, None, None),
                "healthy, decoded logits in float32", word=WORD[dtype])
    for name in "llama", "experts":
        b.count(f"{name}, the last state alone in bfloat16, decode", run(name, F32, 40, 300, 6, narrow_last), 1,
                ENGINES[0], "faults in decoded logits")
    b.count("qwen3_5_text, eps a hundred times larger, decode", run("qwen3_5_text", F32, 40, 300, 6,
            parity_partial.set_eps(100, slice(None))), 1, ENGINES[0], "faults in decoded logits")


class OwnRows(NarrowCache):
    """Every call reads its own rows as they are, and those of earlier ones rounded."""

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        own = key_states.shape[2]
        read = transformers.DynamicCache.update(self, key_states, value_states, layer_idx, *args, **kwargs)
        return tuple(torch.cat([self.narrow(t[:, :, :-own]), t[:, :, -own:]], 2) for t in read)


def make_long(folder):
    """A model whose rotations depend on the length of a call: LongRoPE."""
    rope = {"rope_type": "longrope", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 64,
            "short_factor": [1 + i / 10 for i in range(8)], "long_factor": [2 + i / 2 for i in range(8)]}
    parity_partial.SHAPES["long"] = ("llama", {"max_position_embeddings": 256, "head_dim": 16, "rope_parameters": rope})
    return make(folder, "long")


def in_chunks(b, models):
    """A prompt in three calls against one that was run whole is outside where calls matter: what to type comes first,
    and ends within."""
    models = {**models, "long": make_long(b.folder)}
    for name, narrow, points in (("qwen2", as_f16, None), ("qwen2", as_q8_0, None), ("long", None, None),
                                 ("long", None, "logits")):
        model = load(models[name], F32)
        cache = OwnRows(model.config, narrow) if narrow else transformers.DynamicCache(config=model.config)
        with torch.no_grad(), record_help.record(model, b.at("cand.h5"), points=points):
            for i in range(100, 196, 32):
                model(torch.tensor([TEXT[i:i + 32]]), past_key_values=cache, use_cache=True)
        with h5py.File(b.at("cand.h5"), "r+") as f:
            f["run"].attrs["precision_from"] = "numbers"
        b.must("capture", "ref", models[name], "--ids-from", b.at("cand.h5"), "--force", "-o", b.at("ref.h5"))
        what = f"{name}, in chunks, {narrow.__name__ if narrow else points or 'all'}"
        first = b.judged(models[name]).returncode
        with open(b.at("report.json"), encoding="utf-8") as f:
            again = [shlex.split(line)[1:] for line in json.load(f)["next"][:2]]
        b.say(f"{what}: what to type", first == 1 and again[0][:2] == ["capture", "ref"] and "--like" in again[0],
              f"exit status {first}, {again}")
        own = b.at("own.h5")
        b.must(*(own if word == "reference.h5" else word for word in again[0]), "--force")
        done = b.vernier(*(own if word == "reference.h5" else word for word in again[1]))
        b.say(f"{what}: what was typed", done.returncode == 0, done.stdout[-300:])


def several(b, models):
    """Candidates beside each other, in a vote and in folders: each is judged as its numbers are. One has a fault."""
    path, ids, found = models["qwen2"], TEXT[200:240], []
    for folder in ("refs", "cands"):
        os.makedirs(b.at(folder), exist_ok=True)
    for i, cache in enumerate((as_f16, None, as_f16, as_f16)):
        model = load(path, F32)
        if i == 3:
            parity_partial.set_eps(10, slice(None))(model)
        with torch.no_grad(), record_help.record(model, b.at(f"run{i}.h5")):
            model(torch.tensor([ids if i < 2 else ids[:30]]),
                  **({"past_key_values": NarrowCache(model.config, cache)} if cache else {}))
        with h5py.File(b.at(f"run{i}.h5"), "r+") as f:
            f["run"].attrs["precision_from"] = "numbers"
        found.append(b.at(f"run{i}.h5"))
    b.must("capture", "ref", path, "--ids-from", found[0], "--force", "-o", b.at("ref.h5"))
    b.must("capture", "ref", path, "--ids-from", found[2], "--force", "-o", b.at("short.h5"))
    for n, ref, cand in ((1, "ref.h5", found[0]), (2, "short.h5", found[2])):
        shutil.copy(b.at(ref), b.at(f"refs/p{n}.h5"))
        shutil.copy(cand, b.at(f"cands/p{n}.h5"))
    for what, args, status, named in (
            ("beside each other", (b.at("ref.h5"), found[0], found[1]), 0, 1),
            ("in a vote", ("--vote", b.at("ref.h5"), found[0], found[1]), 0, 1),
            ("in folders", (b.at("refs"), b.at("cands")), 0, 2),
            ("beside a fault", (b.at("short.h5"), found[2], found[3]), 1, 1)):
        done = b.vernier("compare", *args, "--model", path, "--threads", "1")
        said = (done.stdout + done.stderr).count("nobody declared")
        b.say(f"several candidates {what}", done.returncode == status and said >= named,
              f"exit status {done.returncode}, {said} named")


def main():
    program, short = sys.argv[1], sys.argv[2:] == ["--short"]
    seconds = float(sys.argv[3]) if sys.argv[2:3] == ["--random"] and len(sys.argv) == 4 else 0
    every = 32 if short else int(sys.argv[3]) if sys.argv[2:3] == ["--sample"] and len(sys.argv) == 4 else 1
    part = [int(n) for n in sys.argv[3:]] if sys.argv[2:3] == ["--part"] and len(sys.argv) == 5 else None
    if len(sys.argv) > 2 and not short and not seconds and not part and sys.argv[2] != "--sample":
        sys.exit("usage: parity_healthy.py VERNIER [--short | --sample EVERY | --random SECONDS | --part FIRST COUNT]")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    seed = int(os.environ.get("SEED", time.time() if seconds else 1))
    draw, since, runs = random.Random(seed), time.time(), 0
    print(f"SEED={seed}")
    with tempfile.TemporaryDirectory() as folder:
        b = Healthy(program, folder)
        models = {family: model_of(family) for family in FAMILIES}
        models.update({name: make(folder, name) for name in (["two"] if short else parity_partial.SHAPES)})
        todo = all_runs(models, draw, every)
        todo = todo[part[0]:sum(part)] if part else [*once_outside(models), *todo]
        for which in todo:
            if seconds and time.time() - since > seconds:
                break
            one(b, models, which, seed)
            runs += 1
            if runs % 25 == 0:
                print(f"{runs} runs, {time.time() - since:.0f} s", flush=True)
        if not part:
            one_layer(b, models)
            changes(b, models)
            narrow_norms(b, models)
            logits_alone(b, models)
            decoded_alone(b, models)
            in_chunks(b, models)
            several(b, models)
            wide(b, folder, seed)
        for kind, (wrong, right) in sorted(b.kinds.items()):
            print(f"{kind}: {right} of {right + wrong} as expected")
        for what, n in b.named.most_common():
            print(f"policy named: {what}: {n}")
        outside = sum(wrong for kind, (wrong, _) in b.kinds.items() if "healthy" in kind)
        print(f"{runs} healthy runs, {outside} outside, {b.accused} accused")
        print(f"{b.good} passed, {b.bad} failed")
    sys.exit(b.bad != 0)


if __name__ == "__main__":
    main()
