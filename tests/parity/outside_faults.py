"""outside_faults.py: mistakes that are made in transformers' own modules and functions, from outside, as data.

A mistake is a function of a Model that yields patches (object, attribute, value). Its row says in which families it can
be made, how the model is called (whole, steps, chunks, padded), the checkpoint where the error begins (a glob), and
which ids name it rightly (globs; "" is an arrangement, which has no id; none: no known mistake is meant). An answer
that is not among them is a wrong name. Those in SURE are to be named in every format. Here: rotations, norms, products
and activations.
"""
import sys
import types

import torch
import torch.nn.functional as F

from record_help import prompt

LLAMAS = "llama mistral qwen2 qwen3"
ROTARY = LLAMAS + " qwen3_5_text"
ALL = "gpt2 " + ROTARY
FAULTS = []
WHOLE = set()  # of these, every origin has the name
PLAIN = set()  # recorded as record() does by default, without scores and probabilities
UNKNOWN = set()  # no name is meant: the catalogue has no such mistake, and nothing fits it
SURE = {"heads_innermost", "heads_before_tokens", "embed_of_positions", "embed_of_positions_in_steps",
        "rope_by_ids", "rope_by_ids_in_steps", "steps_slot_early", "steps_slot_late", "steps_value_slot_early",
        "step_slot_late",
        "last_step_length_stale", "last_step_slot_stale", "rope_last_step_stale",
        "padding_seen", "padding_seen_in_steps", "step_block_lost", "down_int8_rows", "down_int8_tensor",
        "down_int8_product", "down_tf32",
        "down_tf32_cut", "down_bf16_product", "down_stored_bf16", "norm_stored_bf16", "scores_f16", "softmax_f16",
        "probs_f16", "probs_bf16",
        "attention_tf32", "attention_tf32_cut", "attention_bf16", "attention_f16", "k_v_weights", "q_rows_swapped",
        "no_mask", "mask_ahead", "act_tanh",
        "norm_left_out", "norm_mlp_left_out", "norm_left_out_in_steps", "norm_mlp_twice", "down_rows_rolled",
        "act_sigmoid", "act_hardswish", "act_gate_bit_clamped", "head_zero", "delta_no_l2", "delta_repeat",
        "delta_state_lost", "cap_of_5", "cap_before_scale"}


class Model:
    """A transformers model, its parts under one name in every family."""

    def __init__(self, model, family):
        self.model, self.family, gpt2 = model, family, family == "gpt2"
        self.body = model.transformer if gpt2 else model.model
        self.layers = list(self.body.h if gpt2 else self.body.layers)
        self.last = len(self.layers) - 1
        self.layer = self.layers[self.last]  # one that attends
        self.attn = self.layer.attn if gpt2 else self.layer.self_attn
        self.mlp = self.layer.mlp
        self.source = sys.modules[type(self.attn).__module__]
        self.norm = self.layer.ln_1 if gpt2 else self.layer.input_layernorm
        self.mlp_norm = self.layer.ln_2 if gpt2 else self.layer.post_attention_layernorm
        self.final = self.body.ln_f if gpt2 else self.body.norm
        self.down = self.mlp.c_proj if gpt2 else self.mlp.down_proj
        self.up = self.mlp.c_fc if gpt2 else self.mlp.up_proj
        self.out = self.attn.c_proj if gpt2 else self.attn.o_proj
        self.embed = self.body.wte if gpt2 else self.body.embed_tokens
        self.eps = next(n for n in ("eps", "variance_epsilon") if hasattr(self.norm, n))
        config = model.config
        self.heads = config.num_attention_heads
        self.kv_heads = getattr(config, "num_key_value_heads", self.heads)
        self.width = self.attn.head_dim
        self.delta = next((l.linear_attn for l in reversed(self.layers) if hasattr(l, "linear_attn")), None)
        self.delta_at = next((i for i in reversed(range(len(self.layers))) if hasattr(self.layers[i], "linear_attn")),
                             None)

    @property
    def p(self):
        return f"layer{self.last}."


def fault(name, families, origin, ids, call="whole"):
    """origin: {p} is the last layer's, {d} that of the last delta net. ids: of one string, blanks between."""

    def add(f):
        FAULTS.append(types.SimpleNamespace(name=name, families=families.split(), origin=origin.split(),
                                            ids=ids.split(), call=call, make=f))
        return f

    return add


def linear(weight, bias=None):
    return lambda x: F.linear(x, weight, bias)


def matrix(module):
    """Outputs first, in every family."""
    return module.weight.T if type(module).__name__ == "Conv1D" else module.weight


def product(module, change):
    """Another matrix in its place: the weights of the file stay what they are."""
    weight = change(matrix(module).detach().clone().contiguous()).to(module.weight.dtype)
    return module, "forward", linear(weight, module.bias)


# ---- rotations -----------------------------------------------------------------------------------


def rotation(name, families, ids, call="whole", origin="layer*.q_rope layer*.k_rope"):
    """Calls f(m, original, q, k, cos, sin) instead of apply_rotary_pos_emb."""

    def add(f):
        def make(m):
            original = m.source.apply_rotary_pos_emb
            yield m.source, "apply_rotary_pos_emb", lambda q, k, cos, sin, unsqueeze_dim=1: f(
                m, original, q, k, cos, sin)

        fault(name, families, origin, ids, call)(make)
        return f

    return add


def halves(cos):
    return cos[..., : cos.shape[-1] // 2]


@rotation("rope_interleaved", ROTARY, "R1")
def _(m, original, q, k, cos, sin):
    cos, sin = (halves(t).repeat_interleave(2, -1).unsqueeze(1) for t in (cos, sin))
    R = cos.shape[-1]
    quarter = lambda x: torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    one = lambda x: torch.cat((x[..., :R] * cos + quarter(x[..., :R]) * sin, x[..., R:]), -1)
    return one(q), one(k)


@rotation("rope_sign", ROTARY, "R8")
def _(m, original, q, k, cos, sin):
    return original(q, k, cos, -sin)


@rotation("rope_cos_sin", LLAMAS, "")
def _(m, original, q, k, cos, sin):
    return original(q, k, sin, cos)


@rotation("rope_queries_alone", ROTARY, "R12", origin="layer*.k_rope")
def _(m, original, q, k, cos, sin):
    return original(q, k, cos, sin)[0], k


@rotation("rope_keys_alone", ROTARY, "R12", origin="layer*.q_rope")
def _(m, original, q, k, cos, sin):
    return q, original(q, k, cos, sin)[1]


@rotation("rope_twice", LLAMAS, "R10*")
def _(m, original, q, k, cos, sin):
    return original(*original(q, k, cos, sin), cos, sin)


@rotation("rope_bf16_table", "llama mistral qwen2", "R13*")
def _(m, original, q, k, cos, sin):
    return original(q, k, cos.bfloat16().to(q.dtype), sin.bfloat16().to(q.dtype))


def angled(name, families, ids, change, call="whole"):
    """change(m, frequencies, positions) -> (frequencies, positions), in float32."""

    def make(m):
        rotary = m.body.rotary_emb

        def forward(x, position_ids):
            positions = position_ids[0] if position_ids.ndim == 3 else position_ids
            inv, pos = change(m, rotary.inv_freq.float(), positions.float())
            angles = pos[..., None].to(inv.dtype) * inv
            angles = torch.cat((angles, angles), -1).float()
            return ((angles.cos() * rotary.attention_scaling).to(x.dtype),
                    (angles.sin() * rotary.attention_scaling).to(x.dtype))

        yield rotary, "forward", forward

    fault(name, families, "layer*.q_rope layer*.k_rope", ids, call)(make)


def theta(value):
    def change(m, inv, pos):
        R = 2 * len(inv)
        return 1.0 / value ** (torch.arange(0, R, 2).float() / R), pos

    return change


angled("rope_theta_20000", "mistral qwen2 qwen3", "R2*", theta(20000.0))
angled("rope_theta_10000", "qwen2 qwen3", "R2*", theta(10000.0))
angled("rope_llama3_ignored", "llama", "R5.all", lambda m, inv,
       pos: theta(m.model.config.rope_parameters["rope_theta"])(m, inv, pos))
angled("rope_from_one", LLAMAS, "R3*", lambda m, inv, pos: (inv, pos + 1))
angled("rope_from_minus_one", LLAMAS, "R3*", lambda m, inv, pos: (inv, pos - 1))
angled("rope_stretched", LLAMAS, "R5*", lambda m, inv, pos: (inv, pos / 2))
angled("rope_angles_f16", "llama mistral qwen2", "R13*", lambda m, inv, pos: (inv.half(), pos.half()))
angled("rope_angles_bf16", "llama mistral qwen2", "R13*", lambda m, inv, pos: (inv.bfloat16(), pos.bfloat16()))
angled("rope_positions_bf16", "mistral qwen2", "R13*", lambda m, inv, pos: (inv, pos.to(torch.bfloat16).float()))
angled("rope_steps_from_zero", "llama qwen2", "R3*", lambda m, inv, pos: (inv, pos - pos[:, :1]), "steps")
angled("rope_steps_one_late", "llama qwen2", "R3*", lambda m, inv, pos: (inv, pos - (pos[:, :1] > 0).float()), "steps")
angled("rope_last_step_stale", "llama qwen2", "R3*", lambda m, inv, pos: (inv, pos - (pos[:, :1] == 69).float()),
       "steps")
angled("rope_chunks_from_zero", "llama qwen2", "R3*", lambda m, inv, pos: (inv, pos - pos[:, :1]), "chunks")
IDS = torch.tensor(prompt("p070"))
angled("rope_by_ids", LLAMAS, "", lambda m, inv, pos: (inv, IDS[pos.long()].float()))
angled("rope_by_ids_in_steps", "llama qwen2", "", lambda m, inv,
       pos: (inv, IDS[pos.long()].float() if pos.shape[1] == 1 else pos), "steps")
angled("rope_width_by_dim", "qwen2 mistral", "R4* R2* R5*", lambda m, inv, pos: (1.0 / m.model.config.rope_parameters[
    "rope_theta"] ** (torch.arange(0, 2 * len(inv), 2).float() / (4 * len(inv))), pos))


# ---- norms ---------------------------------------------------------------------------------------


def normed(name, families, ids, f, which="norm", origin="{p}attn_norm", call="whole"):
    """Calls f(m, norm, x in float32), which returns float32, instead of a norm's forward."""

    def make(m):
        norm = getattr(m, which) if which != "q_norm" else m.attn.q_norm
        yield norm, "forward", lambda x: f(m, norm, x.float()).to(x.dtype)

    fault(name, families, origin, ids, call)(make)


def weight_of(m, norm):
    return (1 + norm.weight if m.family == "qwen3_5_text" else norm.weight).float()


def rms(x, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


normed("norm_eps_1e-3", ROTARY, "N1*", lambda m, n, x: rms(x, 1e-3) * weight_of(m, n))
normed("norm_eps_0.03", ROTARY, "N1*", lambda m, n, x: rms(x, 0.03) * weight_of(m, n))
normed("norm_eps_outside", LLAMAS, "N2*", lambda m, n,
       x: x / (x.pow(2).mean(-1, keepdim=True).sqrt() + 1e-3) * weight_of(m, n))
normed("norm_no_weight", LLAMAS, "N7.weight", lambda m, n, x: rms(x, getattr(n, m.eps)))
normed("norm_plus_one", LLAMAS, "N6", lambda m, n, x: rms(x, getattr(n, m.eps)) * (1 + n.weight.float()))
normed("norm_no_plus_one", "qwen3_5_text", "N6", lambda m, n, x: rms(x, n.eps) * n.weight.float())
normed("norm_sum", LLAMAS, "N5", lambda m, n, x: x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + getattr(n, m.eps))
       * weight_of(m, n))
normed("norm_unbiased", LLAMAS, "N4", lambda m, n,
       x: x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) / (x.shape[-1] - 1) + getattr(n, m.eps)) * weight_of(m, n))
normed("norm_centred", LLAMAS, "N3.layer", lambda m, n,
       x: F.layer_norm(x, x.shape[-1:], weight_of(m, n), None, getattr(n, m.eps)))
normed("norm_stored_bf16", ROTARY, "", lambda m, n, x: (rms(x, getattr(n, m.eps)) * weight_of(m, n)).bfloat16().float())
normed("norm_stored_f16", ROTARY, "P1* P3*", lambda m, n,
       x: (rms(x, getattr(n, m.eps)) * weight_of(m, n)).half().float())
normed("norm_l1", LLAMAS, "", lambda m, n, x: x / (x.abs().mean(-1, keepdim=True) + 1e-5) * weight_of(m, n))
normed("norm_no_mean", "gpt2", "N3.rms", lambda m, n, x: rms(x, n.eps) * n.weight.float() + n.bias.float())
normed("norm_no_bias", "gpt2", "N7.bias", lambda m, n, x: F.layer_norm(x, x.shape[-1:], n.weight.float(), None, n.eps))
normed("norm_eps_and_variance", "gpt2", "N1*+N4* N4*+N1*", lambda m, n, x: (x - x.mean(-1, keepdim=True))
       / torch.sqrt(x.var(-1, unbiased=True, keepdim=True) + 1e-3) * n.weight.float() + n.bias.float())
normed("norm_eps_no_weight", "llama qwen2", "N1*+N7* N7*+N1*", lambda m, n, x: rms(x, 0.02))
normed("norm_final_skipped", LLAMAS, "N16.skipped", lambda m, n, x: x, "final", "final_norm")
normed("norm_final_twice", LLAMAS, "N16.twice", lambda m, n,
       x: rms(rms(x, 1e-6) * weight_of(m, n), 1e-6) * weight_of(m, n), "final", "final_norm")
normed("norm_mlp_of_attn", LLAMAS, "N12", lambda m, n, x: rms(x, getattr(n, m.eps)) * weight_of(m, m.norm), "mlp_norm",
       "{p}mlp_norm")
normed("norm_left_out", ALL + " gemma2", "N20", lambda m, n, x: x)
normed("norm_mlp_left_out", ALL, "N20", lambda m, n, x: x, "mlp_norm", "{p}mlp_norm")
normed("norm_left_out_in_steps", "gemma2 llama", "N20", lambda m, n, x: x, call="steps")
normed("norm_mlp_twice", LLAMAS, "N16.twice", lambda m, n, x: rms(rms(x, getattr(n, m.eps)) * weight_of(m, n),
       getattr(n, m.eps)) * weight_of(m, n), "mlp_norm", "{p}mlp_norm")
normed("norm_q_skipped", "qwen3 qwen3_5_text", "N8.skipped", lambda m, n, x: x, "q_norm", "{p}q_norm")
normed("norm_q_of_k", "qwen3 qwen3_5_text", "N11", lambda m, n,
       x: rms(x, getattr(n, m.eps)) * weight_of(m, m.attn.k_norm), "q_norm", "{p}q_norm")
normed("norm_channel_off", "llama gpt2", "", lambda m, n,
       x: (rms(x, 1e-5) if m.family != "gpt2" else F.layer_norm(x, x.shape[-1:], None, None, n.eps)) * n.weight.float()
       * torch.where(torch.arange(x.shape[-1]) == 7, 1.15, 1.0) + (n.bias.float() if m.family == "gpt2" else 0))


# ---- products ------------------------------------------------------------------------------------


def changed(name, families, origin, ids, which, change, call="whole"):
    fault(name, families, origin, ids, call)(lambda m: iter([product(which(m), change)]))


down, up, out = (lambda m: m.down), (lambda m: m.up), (lambda m: m.out)
q, k, v, gate = ((lambda m: m.attn.q_proj), (lambda m: m.attn.k_proj), (lambda m: m.attn.v_proj),
                 (lambda m: m.mlp.gate_proj))

changed("out_transposed", "gpt2 llama qwen2", "{p}attn_out", "W1", out, lambda w: w.T if w.shape[0] == w.shape[1]
        else w.flip(0))
changed("down_bytes_transposed", ALL, "{p}down_proj", "W1b", down,
        lambda w: w.reshape(-1).reshape(w.shape[1], w.shape[0]).T)
changed("down_bytes_transposed_once_more", ALL, "{p}down_proj", "W1b", down,
        lambda w: w.T.contiguous().reshape(w.shape))
changed("up_bytes_transposed", LLAMAS, "{p}up_proj", "W1b", up,
        lambda w: w.reshape(-1).reshape(w.shape[1], w.shape[0]).T)
changed("down_truncated_bf16", LLAMAS, "{p}down_proj", "W13", down,
        lambda w: (w.float().view(torch.int32) & -65536).view(torch.float32))
changed("down_rounded_bf16", ALL, "{p}down_proj", "W13", down, lambda w: w.bfloat16())
changed("down_rounded_f16", "qwen2 qwen3_5_text gpt2", "{p}down_proj", "W13 W14", down, lambda w: w.half())
changed("down_k_tail", ALL, "{p}down_proj", "", down, lambda w: torch.cat((w[:, :-8], torch.zeros_like(w[:, -8:])), 1))
changed("down_ranks_swapped", ALL, "{p}down_proj", "P18.order P18* W19*", down,
        lambda w: torch.cat(w.chunk(2, 1)[::-1], 1))
changed("down_rank_missing", ALL, "{p}down_proj", "P15", down,
        lambda w: torch.cat((w.chunk(2, 1)[0], 0 * w.chunk(2, 1)[1]), 1))
changed("out_ranks_swapped", LLAMAS, "{p}attn_out", "P18*", out, lambda w: torch.cat(w.chunk(2, 1)[::-1], 1))
changed("down_random", ALL, "{p}down_proj", "", down,
        lambda w: 0.02 * torch.randn(w.shape, generator=torch.Generator().manual_seed(5)))
changed("down_zero", ALL, "{p}down_proj", "W11 ", down, lambda w: 0 * w)
changed("up_zero", LLAMAS, "{p}up_proj", "W11 ", up, lambda w: 0 * w)
changed("down_scaled", ALL, "{p}down_proj", "", down, lambda w: 1.05 * w)
changed("down_int8_rows", "llama qwen2 qwen3", "{p}down_proj", "W15*", down, lambda w:
        torch.round(w.float() / (w.float().abs().amax(1, True) / 127)) * (w.float().abs().amax(1, True) / 127))
changed("down_int8_tensor", "llama qwen2 qwen3", "{p}down_proj", "W15*", down,
        lambda w: torch.round(w.float() / (w.float().abs().max() / 127)) * (w.float().abs().max() / 127))
changed("down_e4m3", "llama qwen2 qwen3", "{p}down_proj", "W15*", down, lambda w:
        (w.float() * 448 / w.float().abs().max()).to(torch.float8_e4m3fn).float() * w.float().abs().max() / 448)
changed("down_e4m3_plain", "llama qwen2 qwen3", "{p}down_proj", "W15*", down,
        lambda w: w.float().to(torch.float8_e4m3fn).float())
changed("down_e5m2_plain", "llama qwen2 qwen3", "{p}down_proj", "W15*", down,
        lambda w: w.float().to(torch.float8_e5m2).float())
changed("down_row_zero", ALL, "{p}down_proj", "", down,
        lambda w: torch.where(torch.arange(w.shape[0])[:, None] == 5, 0.0, w))
changed("gate_of_up", LLAMAS, "{p}gate_proj", "W4.weights", gate, lambda w: w)
changed("q_rows_swapped", LLAMAS, "{p}q_proj", "P18*", q, lambda w: torch.cat(w.chunk(2, 0)[::-1], 0))
changed("q_permuted_llama", "llama mistral", "{p}q_proj", "", q,
        lambda w: w.view(-1, 2, w.shape[0] // (2 * (w.shape[0] // (8 if w.shape[0] == 48 else 20))),
                         w.shape[1]).transpose(1, 2).reshape(w.shape))


@fault("gate_is_up", LLAMAS, "{p}gate_proj", "W4.weights")
def _(m):
    yield m.mlp.gate_proj, "forward", m.mlp.up_proj.forward


FAULTS[:] = [f for f in FAULTS if f.name not in ("gate_of_up", "q_permuted_llama")]


@fault("fused_qkv_transposed", "llama qwen2 mistral qwen3", "{p}q_proj {p}k_proj {p}v_proj", "W1b")
def _(m):
    products = [m.attn.q_proj, m.attn.k_proj, m.attn.v_proj]
    w = torch.cat([x.weight for x in products]).detach()
    w = w.T.contiguous().reshape(w.shape)
    for x, part in zip(products, w.split([x.weight.shape[0] for x in products])):
        yield x, "forward", linear(part, x.bias)


@fault("fused_gate_up_transposed", LLAMAS, "{p}gate_proj {p}up_proj", "W1b")
def _(m):
    products = [m.mlp.gate_proj, m.mlp.up_proj]
    w = torch.cat([x.weight for x in products]).detach()
    w = w.T.contiguous().reshape(w.shape)
    for x, part in zip(products, w.split([x.weight.shape[0] for x in products])):
        yield x, "forward", linear(part, None)


@fault("fused_qkv_bytes_transposed", "llama qwen2 mistral qwen3", "{p}q_proj {p}k_proj {p}v_proj", "W1b")
def _(m):
    products = [m.attn.q_proj, m.attn.k_proj, m.attn.v_proj]
    w = torch.cat([x.weight for x in products]).detach()
    w = w.reshape(w.shape[1], w.shape[0]).T.contiguous()
    for x, part in zip(products, w.split([x.weight.shape[0] for x in products])):
        yield x, "forward", linear(part, x.bias)


@fault("k_bias_missing", "qwen2 qwen3", "{p}k_proj", "W6")
def _(m):
    yield m.attn.k_proj, "forward", linear(m.attn.k_proj.weight)


@fault("v_bias_twice", "qwen2 qwen3", "{p}v_proj", "W7*")
def _(m):
    yield m.attn.v_proj, "forward", linear(m.attn.v_proj.weight, 2 * m.attn.v_proj.bias)


@fault("k_v_weights", LLAMAS, "{p}k_proj", "W4.kv W4")
def _(m):
    yield m.attn.k_proj, "forward", linear(m.attn.v_proj.weight, m.attn.k_proj.bias)


changed("down_columns_rolled", "llama gpt2", "{p}down_proj", "", lambda m: m.down, lambda w: w.roll(1, 1))
changed("down_columns_rolled_back", "qwen3", "{p}down_proj", "", lambda m: m.down, lambda w: w.roll(-3, 1))
SURE.update(("down_columns_rolled", "down_columns_rolled_back"))


@fault("down_rows_rolled", "llama qwen3", "{p}down_proj", "")
def _(m):
    yield m.down, "forward", linear(m.down.weight.roll(1, 0), m.down.bias)


@fault("down_of_layer_0", ALL, "{p}down_proj", "W9*")
def _(m):
    other = m.layers[0].mlp.c_proj if m.family == "gpt2" else m.layers[0].mlp.down_proj
    yield m.down, "forward", linear(matrix(other), m.down.bias)


def acting(name, families, origin, ids, f):
    """Calls f(m, module, x) instead of a product's forward."""
    fault(name, families, origin, ids)(lambda m: iter([(m.down, "forward", lambda x: f(m, m.down, x))]))


def tf32(x):
    """Rounded to the nearest of ten bits of mantissa."""
    u = x.float().view(torch.int32)
    return ((u + 0xFFF + (u >> 13 & 1)) & -8192).view(torch.float32)


def tf32_cut(x):
    return (x.float().view(torch.int32) & -8192).view(torch.float32)


def int8(x):
    """Rounded to int8, with one scale for each row."""
    scale = x.float().abs().amax(-1, True) / 127
    return torch.round(x.float() / scale) * scale


acting("down_tf32", ALL, "{p}down_proj", "", lambda m, n,
       x: F.linear(tf32(x), tf32(matrix(n)), n.bias.float() if n.bias is not None else None).to(x.dtype))
acting("down_bf16_product", ALL, "{p}down_proj", "", lambda m, n,
       x: F.linear(x.bfloat16().float(), matrix(n).bfloat16().float(),
                   n.bias.float() if n.bias is not None else None).to(x.dtype))
acting("down_f16_product", "qwen2 llama gpt2", "{p}down_proj", "", lambda m, n, x:
       F.linear(x.half().float(), matrix(n).half().float(), n.bias.float() if n.bias is not None else None).to(x.dtype))
acting("down_input_int8", "qwen2 llama gpt2", "{p}down_proj", "", lambda m, n, x: F.linear(
    (torch.round(x.float() / (x.float().abs().amax(-1, True) / 127)) * (x.float().abs().amax(-1, True) / 127)),
    matrix(n).float(), n.bias.float() if n.bias is not None else None).to(x.dtype))
acting("down_tf32_cut", ALL, "{p}down_proj", "", lambda m, n,
       x: F.linear(tf32_cut(x), tf32_cut(matrix(n)), n.bias.float() if n.bias is not None else None).to(x.dtype))
acting("down_int8_product", "qwen2 llama gpt2", "{p}down_proj", "", lambda m, n,
       x: F.linear(int8(x), int8(matrix(n)), n.bias.float() if n.bias is not None else None).to(x.dtype))
acting("down_autocast", ALL, "{p}down_proj", "", lambda m, n,
       x: F.linear(x.bfloat16(), matrix(n).bfloat16(), n.bias.bfloat16() if n.bias is not None else None).to(x.dtype))
acting("down_autocast_f16", ALL, "{p}down_proj", "", lambda m, n,
       x: F.linear(x.half(), matrix(n).half(), n.bias.half() if n.bias is not None else None).to(x.dtype))
acting("down_stored_bf16", ALL, "{p}down_proj", "", lambda m, n,
       x: F.linear(x, matrix(n), n.bias).bfloat16().to(x.dtype))
acting("down_token_40_off", ALL, "{p}down_proj", "", lambda m, n,
       x: F.linear(x * torch.where(torch.arange(x.shape[1]) == 40, 1.2, 1.0)[:, None].to(x.dtype), matrix(n), n.bias))
acting("down_twice", ALL, "{p}down_proj", "N14.twice P16* W7*", lambda m, n, x: 2 * F.linear(x, matrix(n), n.bias))
acting("down_half", ALL, "{p}down_proj", "P16*", lambda m, n, x: 0.5 * F.linear(x, matrix(n), n.bias))
acting("down_f16_saturated", "qwen2", "{p}down_proj", "P1*", lambda m, n,
       x: F.linear(x, 1e6 * matrix(n), n.bias).clamp(-65504, 65504))


@fault("products_tf32", LLAMAS, "layer0.q_proj layer0.k_proj layer0.v_proj", "")
def _(m):
    for n in m.model.modules():
        if isinstance(n, torch.nn.Linear):
            yield n, "forward", lambda x, n=n: F.linear(tf32(x), tf32(n.weight),
                                                        n.bias.float() if n.bias is not None else None).to(x.dtype)


# ---- activations ---------------------------------------------------------------------------------


def activated(name, ids, f, families=LLAMAS + " qwen3_5_text"):
    fault(name, families, "{p}mlp_act {p}gate_act",
          ids)(lambda m: iter([(m.mlp.act if m.family == "gpt2" else m.mlp.act_fn, "forward", f)]))


activated("act_gelu", "M1.gelu", F.gelu)
activated("act_gelu_tanh", "M1.tanh", lambda x: F.gelu(x, approximate="tanh"))
activated("act_relu", "M1.relu", F.relu)
activated("act_quick", "M1.quick", lambda x: x * torch.sigmoid(1.702 * x))
activated("act_none", "M3.none", lambda x: x)
activated("act_in_bf16", "", lambda x: F.silu(x.bfloat16()).to(x.dtype))
activated("act_stored_f16", "P1* P3*", lambda x: F.silu(x).half().to(x.dtype))
activated("act_sigmoid", "M1", torch.sigmoid)
activated("act_tanh", "M1", torch.tanh)
activated("act_hardswish", "M1", F.hardswish)
activated("act_silu_of_gpt2", "M1.silu", F.silu, "gpt2")
activated("act_relu_of_gpt2", "M1.relu", F.relu, "gpt2")
activated("act_quick_of_gpt2", "M1.quick", lambda x: x * torch.sigmoid(1.702 * x), "gpt2")
activated("act_gelu_of_gpt2", "M1.gelu", F.gelu, "gpt2")


@fault("act_swapped", ROTARY, "{p}mlp_act {p}gate_act", "W4.act")
def _(m):
    n = m.mlp
    yield n, "forward", lambda x: n.down_proj(n.act_fn(n.up_proj(x)) * n.gate_proj(x))


@fault("act_of_product", ROTARY, "{p}mlp_act {p}gate_act", "M2")
def _(m):
    n = m.mlp
    yield n, "forward", lambda x: n.down_proj(n.act_fn(n.up_proj(x) * n.gate_proj(x)))


@fault("act_of_both", ROTARY, "{p}mlp_act {p}gate_act", "M3.both")
def _(m):
    n = m.mlp
    yield n, "forward", lambda x: n.down_proj(n.act_fn(n.up_proj(x)) * n.act_fn(n.gate_proj(x)))


@fault("act_gate_bit_clamped", ROTARY, "{p}mlp_act", "")
def _(m):
    n = m.mlp
    yield n, "forward", lambda x: n.down_proj((n.act_fn(n.gate_proj(x)) * n.up_proj(x)).clamp(-0.7, 0.7))
