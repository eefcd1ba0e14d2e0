"""parity_partial.py VERNIER [--short [N] | --random SECONDS]: dumps of transformers of which only logits, or a few
hidden states, were saved.

Correct runs must be within their limits: six families, three models of other shapes and one with experts, float32,
float16 and bfloat16, eager and sdpa attention, whole prompts and decoding. Runs with a small fault must be outside.
The last lines print by how many floors correct runs are off (compare/replay/draws.h): how well a span's floor is
predicted.
--short: fewer; with N, each N-th of those.
--random: correct prompts alone, of a random family, format, length, place in the text and choice of hidden states.
"""
import collections
import json
import os
import random
import shutil
import sys
import tempfile
import time

import numpy as np
import record_help
from needs_transformers import torch, transformers
from record_help import BF16, F16, F32, FAMILIES, Bench, model_of, prompt

WORD = {F32: "f32", F16: "f16", BF16: "bf16"}
TEXT = prompt("text")
PROMPTS = ((24, 0), (63, 100), (63, 500), (120, 700), (200, 900), (63, 1400))  # tokens, and where in the text
DECODES = ((24, 0), (40, 300), (60, 900))
DECODED = 12
CAPPED = ("gemma2",)  # sdpa of transformers leaves out the cap of its scores
# Correct runs once called outside: model, format, attention, tokens, where, what was saved.
ONCE_OUTSIDE = (("qwen3_5_text", F32, "sdpa", 90, 640, ("layer1.output", "logits")),
                ("qwen3_5_text", BF16, "sdpa", 31, 609, ("logits",)),
                ("qwen3_5_text", F32, "eager", 40, 393, ("logits",)),
                ("experts", F16, "eager", 200, 632, "decode"),
                ("groups", BF16, "eager", 60, 200, ("logits",)),
                ("groups", F16, "eager", 60, 200, ("logits",)),
                ("groups", F16, "sdpa", 130, 700, ("logits",)))

# Models whose attention is not flat: a deep one, a wide one, and one with norms of heads.
SHAPES = {
    "deep": ("llama", {"num_hidden_layers": 24, "head_dim": 16}),
    "deep-norms": ("qwen3", {"num_hidden_layers": 24, "head_dim": 16}),
    "wide": ("qwen2", {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 6}),
    "norms": ("qwen3", {"head_dim": 32}),
}
EXPERTS = {"experts": ("mixtral", {"num_local_experts": 8, "num_experts_per_tok": 2}),
           "many": ("qwen3_moe", {"num_experts": 64, "num_experts_per_tok": 8, "moe_intermediate_size": 64,
                                  "num_hidden_layers": 2, "decoder_sparse_step": 1, "norm_topk_prob": True}),
           "groups": ("deepseek_v3", {"n_routed_experts": 32, "num_experts_per_tok": 4, "n_group": 8, "topk_group": 3,
                                      "num_key_value_heads": 8, "moe_intermediate_size": 32, "n_shared_experts": 1,
                                      "first_k_dense_replace": 1, "num_hidden_layers": 12, "hidden_size": 64,
                                      "intermediate_size": 128, "q_lora_rank": 20, "kv_lora_rank": 24,
                                      "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 8,
                                      "norm_topk_prob": True, "routed_scaling_factor": 2.5})}
# Scores of experts, but not the choice: equal scores may be chosen in either order.
# Or their weights, in no order of their own; or what the scores are made of: then they differ by
# the roundings of weights alone. Or what each expert makes: equal scores are in either order.
WITHOUT_CHOICE = [(name, dtype, points) for dtype in (BF16, F16)
                  for name, points in (("many", "*.{router_logits,moe_out}"), ("many", "*.{router_logits,output}"),
                                       ("groups", "*.{router_weights,output}"), ("groups", "*.{mlp_norm,output}"))]
WITHOUT_CHOICE += [("experts", BF16, "*.{router_weights,expert_out}"), ("groups", BF16, "*.{mlp_norm,expert_out}")]


def make(folder, name):
    """Save a random model with norms and biases that are not neutral."""
    family, more = {**SHAPES, **EXPERTS}[name]
    config = dict(vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=8,
                  num_key_value_heads=2, max_position_embeddings=1024, tie_word_embeddings=False,
                  rope_parameters={"rope_type": "default", "rope_theta": 5e5})
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(family, **{**config, **more}), dtype=F32)
    with torch.no_grad():
        for key, p in model.named_parameters():
            if "norm" in key:
                p.normal_(1, 0.3)
            elif key.endswith("bias"):
                p.normal_(0, 0.3)
            else:
                sharp = 2 if "q_proj" in key or "k_proj" in key else 1
                p.normal_(0, 1 if "embed" in key else sharp / p.shape[1] ** 0.5)
    path = os.path.join(folder, name)
    model.save_pretrained(path)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(model_of("llama" if family == "llama" else "qwen2"), file), path)
    return path


def load(path, dtype, attention="eager"):
    return transformers.AutoModelForCausalLM.from_pretrained(path, dtype=dtype, attn_implementation=attention).eval()


def numbers(t, dtype):
    """bfloat16 as float32, since numpy has none."""
    return (t.float() if dtype is BF16 else t).numpy()


def tensors(model, ids, dtype, hidden):
    with torch.no_grad():
        out = model(torch.tensor([ids]), output_hidden_states=True)
    found = {"logits": out.logits}
    if hidden:
        states = out.hidden_states
        found.update({f"layer{i - 1}.output": states[i] for i in range(1, len(states) - 1)}, final_norm=states[-1])
    return {name: numbers(t[0], dtype) for name, t in found.items()}


class Partial(Bench):
    """Dumps a run, and compares it with the reference on the same tokens."""

    def __init__(self, program, folder, every=1):
        super().__init__(program, folder)
        self.floors = collections.defaultdict(list)
        self.every, self.met = every, 0

    def left_out(self):
        self.met += 1
        return self.met % self.every != 0

    def dumped(self, path, ids, found, dtype):
        text = ",".join(map(str, ids))
        np.savez(self.at("dump.npz"), **found)
        self.must("capture", "ref", path, "--ids", text, "--force", "-o", self.at("ref.h5"))
        self.must("import", self.at("dump.npz"), "--model", path, "--ids", text, "--precision", WORD[dtype], "--force",
                  "-o", self.at("cand.h5"))
        return self.judged(path)

    def decoded(self, model, path, ids):
        with torch.no_grad(), record_help.record(model, self.at("cand.h5"), points="logits"):
            model.generate(torch.tensor([ids]), max_new_tokens=DECODED, min_new_tokens=DECODED, do_sample=False,
                           pad_token_id=0)
        self.must("capture", "ref", path, "--ids-from", self.at("cand.h5"), "--force-ids-from", self.at("cand.h5"),
                  "--force", "-o", self.at("ref.h5"))
        return self.judged(path)

    def must(self, *args):
        done = self.vernier(*args)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())

    def judged(self, path):
        if os.path.exists(self.at("report.json")):
            os.unlink(self.at("report.json"))  # a comparison that crashed has none
        return self.vernier("compare", self.at("ref.h5"), self.at("cand.h5"), "--model", path, "--allow", "missing",
                            "--format", "json", "-o", self.at("report.json"), "--force")

    def expect(self, what, done, status, kind):
        if done.returncode not in (0, 1) or "replay stopped" in done.stdout:
            raise RuntimeError(done.stderr + done.stdout)
        right = done.returncode == status
        with open(self.at("report.json"), encoding="utf-8") as f:
            report = json.load(f)
        if status == 0:
            self.floors[kind] += [x["replay"]["local_over_floor"] for x in report["checkpoints"]
                                  if x.get("replay") and x["replay"]["span"] > 4]
        self.good += right
        self.bad += not right
        if not right:
            print(f"{what}: exit status {done.returncode}, expected {status}")
            print("   ", report["summary"], flush=True)
        self.kinds[kind][right] += 1

    kinds = collections.defaultdict(lambda: [0, 0])


def correct(b, models, prompts, decodes, dtypes):
    for name, path in models.items():
        for dtype in dtypes:
            for i, (n, start) in enumerate(prompts):
                if b.left_out():
                    continue
                model = load(path, dtype, ("eager", "sdpa")[i % 2 and name not in CAPPED])
                for hidden in (False, True):
                    ids = TEXT[start:start + n]
                    done = b.dumped(path, ids, tensors(model, ids, dtype, hidden), dtype)
                    b.expect(f"{name}, {WORD[dtype]}, {n} tokens, {'hidden states' if hidden else 'logits'}", done, 0,
                             "correct prompts")
            for i, (n, start) in enumerate(decodes):
                if b.left_out():
                    continue
                model = load(path, dtype, ("eager", "sdpa")[i % 2 and name not in CAPPED])
                done = b.decoded(model, path, TEXT[start:start + n])
                b.expect(f"{name}, {WORD[dtype]}, {n} tokens and {DECODED} decoded", done, 0, "correct decodes")


def correct_choice(b, models, which):
    """One prompt, of which some tensors were saved, or the logits of tokens decoded after it."""
    if b.left_out():
        return
    name, dtype, attention, n, start, saved = which
    ids, model, decodes = TEXT[start:start + n], load(models[name], dtype, attention), saved == "decode"
    if decodes:
        done = b.decoded(model, models[name], ids)
    else:
        found = tensors(model, ids, dtype, True)
        done = b.dumped(models[name], ids, {key: found[key] for key in saved}, dtype)
    what = "decoding" if decodes else " and ".join(saved)
    b.expect(f"{name}, {WORD[dtype]}, {attention}, {n} tokens from {start}, {what}", done, 0,
             "correct decodes" if decodes else "correct prompts")


def correct_scores(b, models):
    for name, dtype, points in WITHOUT_CHOICE:
        if b.left_out():
            continue
        ids, model = TEXT[:100], load(models[name], dtype)
        with record_help.record(model, b.at("cand.h5"), points=points):
            record_help.run(model, ids)
        b.must("capture", "ref", models[name], "--ids-from", b.at("cand.h5"), "--force", "-o", b.at("ref.h5"))
        b.expect(f"{name}, {WORD[dtype]}, {points}", b.judged(models[name]), 0, "correct scores of experts")


def exchanged_experts(b, models):
    """Two experts work for each other, and which are chosen was not recorded."""
    def change(module, args):
        x, ids, *more = args
        return (x, torch.where(ids == 0, 1, torch.where(ids == 1, 0, ids)), *more)

    for points in ("*.{router_weights,expert_out}", "*.{mlp_norm,expert_out}"):
        if b.left_out():
            continue
        model = load(models["experts"], BF16)
        model.model.layers[1].mlp.experts.register_forward_pre_hook(change)
        with record_help.record(model, b.at("cand.h5"), points=points):
            record_help.run(model, TEXT[:100])
        b.must("capture", "ref", models["experts"], "--ids-from", b.at("cand.h5"), "--force", "-o", b.at("ref.h5"))
        b.expect(f"experts 0 and 1 exchanged, {points}", b.judged(models["experts"]), 1, "exchanged experts")
        with open(b.at("report.json"), encoding="utf-8") as f:
            origins = json.load(f)["origins"]
        b.good += origins == ["layer1.expert_out"]
        b.bad += origins != ["layer1.expert_out"]


def random_choices(b, models, seconds):
    seed = int(os.environ.get("SEED", time.time()))
    draw, since = random.Random(seed), time.time()
    print(f"SEED={seed}")
    while time.time() - since < seconds:
        some = draw.choice([(), (f"layer{draw.randrange(3)}.output",), ("layer0.output", "layer1.output")])
        correct_choice(b, models, (draw.choice(sorted(models)), draw.choice((F32, F32, F16, BF16)),
                                   draw.choice(("eager", "sdpa")), draw.choice((8, 20, 31, 64, 90, 130)),
                                   draw.randrange(1500), (*some, "logits")))


def norms(model):
    return [m for m in model.modules() if type(m).__name__.endswith("Norm")]


def set_eps(factor, which):
    def change(model):
        for m in norms(model)[which]:
            for word in ("variance_epsilon", "eps"):
                if hasattr(m, word):
                    setattr(m, word, getattr(m, word) * factor)
    return change


def drop_bias(model):
    next(p for key, p in model.named_parameters() if key.endswith(("q_proj.bias", "c_attn.bias"))).data.zero_()


def other_theta(model):
    f = model.model.rotary_emb.inv_freq
    f.copy_(20000.0 ** -(torch.arange(f.numel()) / f.numel()))


def scale_one_matrix(model):
    """The output of attention; of Gemma 2 the queries: the norm behind its output takes any factor away."""
    keys = [key for key, _ in model.named_parameters()]
    ends = "q_proj.weight" if any("post_feedforward" in key for key in keys) else ("o_proj.weight", "c_proj.weight")
    next(p for key, p in model.named_parameters() if key.endswith(ends)).data.mul_(1.001)


FAULTS = {  # a change, and the formats in which it shows in the logits
    "eps ten times larger in all norms": (set_eps(10, slice(None)), (F32,)),
    "eps ten times larger in the second norm": (set_eps(10, slice(1, 2)), (F32,)),
    "RoPE with another theta": (other_theta, (F32, F16, BF16)),
    "the first query bias is missing": (drop_bias, (F32, F16, BF16)),
    "one matrix times 1.001": (scale_one_matrix, (F32,)),
}


def faulty(b, models, step):
    tries = [(name, fault, dtype) for name in models for fault, (_, dtypes) in FAULTS.items() for dtype in dtypes]
    # three of its four layers have no RoPE
    tries = [t for t in tries if t[0] != "qwen3_5_text" or t[1] != "RoPE with another theta" or t[2] is F32]
    for name, fault, dtype in tries[::step]:
        if b.left_out():
            continue
        model = load(models[name], dtype)
        try:
            FAULTS[fault][0](model)
        except (StopIteration, AttributeError):  # the model has no biases, or no RoPE
            continue
        ids = TEXT[100:163]
        done = b.dumped(models[name], ids, tensors(model, ids, dtype, False), dtype)
        b.expect(f"{name}, {WORD[dtype]}: {fault}", done, 1, "faults")


def behind_ties(b, models):
    """A fault of 16 bits that is far smaller than another choice of experts, where some scores tie."""
    def shift(module, args, out):
        return (out.float() + 0.05 * out.float().std()).to(out.dtype)

    for name, dtype in (("experts", F16), ("experts", BF16), ("many", F16), ("many", BF16)):
        if b.left_out():
            continue
        model, ids = load(models[name], dtype), TEXT[500:560]
        model.model.layers[1].self_attn.o_proj.register_forward_hook(shift)
        done = b.dumped(models[name], ids, tensors(model, ids, dtype, False), dtype)
        b.expect(f"{name}, {WORD[dtype]}: a shift before ties of experts", done, 1, "faults behind ties")


def late_channel(b, path):
    """One channel of a layer is off from the 41st of 60 decoded tokens on, and only that layer was recorded."""
    for n, start in ((10, 0), (24, 300)):
        if b.left_out():
            continue
        model, calls = load(path, BF16), []

        def change(module, args, out):
            calls.append(1)
            out[..., 7] *= 1.057 if len(calls) > 40 else 1
            return out

        model.model.layers[0].register_forward_hook(change)
        with torch.no_grad(), record_help.record(model, b.at("cand.h5"), points="layer0.output"):
            model.generate(torch.tensor([TEXT[start:start + n]]), max_new_tokens=61, min_new_tokens=61,
                           do_sample=False, pad_token_id=0)
        b.must("capture", "ref", path, "--ids-from", b.at("cand.h5"), "--force-ids-from", b.at("cand.h5"), "--force",
               "-o", b.at("ref.h5"))
        b.expect("a channel that is off late in a decode", b.judged(path), 1, "late channels")
        with open(b.at("report.json"), encoding="utf-8") as f:
            first = next(c for c in json.load(f)["checkpoints"] if c["status"] == "outside")
        found = first["step"] in (40, 41) and any("channel" in x["metric"] and not x["holds"] for x in first["limits"])
        b.good += found
        b.bad += not found
        if not found:
            print(f"channel 7 is off from step 40 on, and found is step {first['step']}: {first['limits']}")


def main():
    program, short = sys.argv[1], sys.argv[2:3] == ["--short"]
    seconds = float(sys.argv[3]) if sys.argv[2:3] == ["--random"] and len(sys.argv) == 4 else 0
    if len(sys.argv) > (4 if short else 2) and not seconds:
        sys.exit("usage: parity_partial.py VERNIER [--short [N] | --random SECONDS]")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        b = Partial(program, folder, int(sys.argv[3]) if short and len(sys.argv) > 3 else 1)
        trained = {family: model_of(family) for family in FAMILIES}
        made = {name: make(folder, name) for name in (*(["norms"] if short else SHAPES), *EXPERTS)}
        if seconds:
            random_choices(b, {**trained, **made}, seconds)
        elif short:
            few = {family: trained[family] for family in ("gpt2", "qwen2", "qwen3_5_text")}
            correct(b, {**few, **made}, PROMPTS[:1], DECODES[:1], (F32, BF16))
            faulty(b, {**few, "experts": made["experts"]}, 3)
        else:
            correct(b, {**trained, **made}, PROMPTS, DECODES, (F32, F16, BF16))
            faulty(b, {**trained, "wide": made["wide"], "experts": made["experts"]}, 1)
        for which in () if seconds else ONCE_OUTSIDE:
            correct_choice(b, {**trained, **made}, which)
        if not seconds:
            correct_scores(b, made)
            exchanged_experts(b, made)
            behind_ties(b, made)
            late_channel(b, trained["llama"])
        for kind, (wrong, right) in sorted(b.kinds.items()):
            print(f"{kind}: {right} of {right + wrong} as expected")
        for kind, of in sorted(b.floors.items()):
            print(f"{kind}: error of {len(of)} spans: {min(of):.2f} to {max(of):.2f} floors, "
                  f"median {sorted(of)[len(of) // 2]:.2f}")
        print(f"{b.good} passed, {b.bad} failed")
    sys.exit(b.bad != 0)


if __name__ == "__main__":
    main()
