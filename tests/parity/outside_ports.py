"""outside_ports.py: more mistakes made in transformers from outside, as outside_faults.py has them: what ports to other
engines get wrong.

Conventions of other engines (an exponent of two, a head width that is padded, a mask aligned to the first key), formats
of a softmax and of logits, weights repacked or quantised in other ways, states and caches of a decode, inputs taken at
the wrong place. Importing this module adds them to FAULTS.
"""
import math

import torch
import torch.nn.functional as F

from outside_attention import SOFTMAX, attends
from outside_faults import (ALL, LLAMAS, ROTARY, SURE, activated, angled, changed, down, fault, gate, int8, linear,
                            matrix, normed, rms, rotation, theta, weight_of, UNKNOWN)
from outside_model import after, block, convolved, rule

SURE |= {"port_logits_bf16", "port_logits_bf16_product", "port_logits_transposed", "port_logits_transposed_back",
         "port_softmax_exponentials_f16",
         "port_softmax_sum_f16", "port_rope_clamped", "port_rope_whole_halves", "port_rope_chunks_shifted",
         "port_rope_keys_late", "port_steps_value_stale", "port_chunk_sees_future", "port_softmax_wholly_f16",
         "port_softmax_plus_one",
         "port_delta_beta_twice", "port_delta_decay_sign", "port_delta_keys_unnormed", "port_norms_behind_rope"}
UNKNOWN |= {"port_" + name for name in """
rope_reversed norm_weight_squared norm_half_width norm_of_all_tokens
norm_of_row_before norm_plus_one_twice layer_norm_ms layer_norm_bias_twice logits_shifted_by_one_id k_bias_of_q
rows_packed_by_eights
zero_point_off int4_groups int8_columns scales_of_next_row act_beta act_by_table act_tanh_without_cube
up_plus_one gate_plus_up up_twice
scale_log_n mask_of_minus_10 mask_transposed softmax_by_blocks softmax_sigmoid softmax_twice values_head_map
key_heads_reversed alibi
heads_scaled keys_of_other_row residual_multiplier branch_subtracted embed_normed embed_int8
embed_small_vocabulary delta_heads_reversed conv_first_tap_lost conv_relu""".split()}
PROBS = "{p}attn_probs {p}attn_context"


def lowest(x):
    return torch.finfo(x.dtype).min


def masked(a, seen):
    return torch.zeros(seen.shape).masked_fill(~seen, lowest(a.query))[None, None].to(a.query.dtype)


# ---- rotations and positions ---------------------------------------------------------------------


def rotated(m, x, positions):
    """cos and sin without the module's hooks: the recorder does not see them."""
    p = positions[None]
    return type(m.body.rotary_emb).forward(m.body.rotary_emb, x, p[None].expand(3, -1, -1) if m.family == "qwen3_5_text"
                                           else p)


@attends("port_values_rotated", ROTARY, "R9", origin=SOFTMAX)
def _(m, a):
    a.value = m.source.apply_rotary_pos_emb(a.value, a.value, *rotated(m, a.value, torch.arange(a.value.shape[2])))[0]


@fault("port_norms_behind_rope", "qwen3 qwen3_5_text", "{p}q_norm {p}k_norm {p}q_rope {p}k_rope", "N10 N8.skipped")
def _(m):
    norms, original, n = (m.attn.q_norm, m.attn.k_norm), m.source.apply_rotary_pos_emb, [0]

    def rope(q, k, cos, sin, unsqueeze_dim=1):
        q, k = original(q, k, cos, sin)
        n[0] += 1
        if n[0] % sum(hasattr(layer, "self_attn") for layer in m.layers):
            return q, k
        return tuple(type(f).forward(f, x) for f, x in zip(norms, (q, k)))

    for f in norms:
        yield f, "forward", lambda x: x
    yield m.source, "apply_rotary_pos_emb", rope


def own_theta(m):
    return m.model.config.rope_parameters["rope_theta"]


angled("port_rope_from_two", "llama mistral qwen2 qwen3", "R3", lambda m, inv, pos: (inv, pos + 2))
angled("port_rope_exponent_half", "mistral qwen2 qwen3", "R2* R4*", lambda m, inv,
       pos: (own_theta(m) ** -(torch.arange(0, 2 * len(inv), 2) / (4 * len(inv))), pos))
angled("port_rope_next_exponent", "mistral qwen2 qwen3", "R5 R2*", lambda m, inv,
       pos: (own_theta(m) ** -((torch.arange(0, 2 * len(inv), 2) + 2) / (2 * len(inv))), pos))
angled("port_rope_ntk", "mistral qwen2 qwen3", "R2* R5", lambda m, inv,
       pos: theta(own_theta(m) * 2 ** (len(inv) / (len(inv) - 1)))(m, inv, pos))
angled("port_rope_ring_of_16", "mistral qwen2 qwen3", "R3b.zero", lambda m, inv, pos: (inv, pos % 16))
angled("port_rope_clamped", "llama qwen2", "", lambda m, inv, pos: (inv, pos.clamp(max=32)))
angled("port_rope_whole_halves", "llama qwen2", "", lambda m, inv, pos: (inv, (pos / 2).floor()))
angled("port_rope_reversed", "llama qwen2", "", lambda m, inv, pos: (inv.flip(0), pos))
angled("port_rope_steps_two_late", "llama qwen2 qwen3", "R3b", lambda m, inv,
       pos: (inv, pos - 2 * (pos[:, :1] > 0).float()), "steps")
angled("port_rope_chunks_shifted", "llama qwen2", "R3*", lambda m, inv, pos: (inv, pos - 3 * (pos[:, :1] > 0).float()),
       "chunks")


@rotation("port_rope_one_head", LLAMAS, "R12", origin="layer*.q_rope")
def _(m, original, q, k, cos, sin):
    rotated_q, rotated_k = original(q, k, cos, sin)
    return torch.cat((rotated_q[:, :1], q[:, 1:]), 1), rotated_k


@rotation("port_rope_keys_late", LLAMAS, "R3b.k", origin="layer*.k_rope")
def _(m, original, q, k, cos, sin):
    late = [torch.cat((t[:, :1], t[:, :-1]), 1) for t in (cos, sin)]
    return original(q, k, cos, sin)[0], original(q, k, *late)[1]


@fault("port_positions_from_two", "gpt2", "pos_embed", "R15*")
def _(m):
    yield m.body.wpe, "forward", lambda ids: F.embedding(ids + 2, m.body.wpe.weight)


# ---- norms ---------------------------------------------------------------------------------------

normed("port_norm_plus_one_twice", "qwen3_5_text", "", lambda m, n, x: rms(x, n.eps) * (2 + n.weight.float()))
normed("port_norm_weight_squared", LLAMAS, "", lambda m, n, x: rms(x, getattr(n, m.eps)) * weight_of(m, n) ** 2)
normed("port_norm_padded_width", ROTARY, "", lambda m, n,
       x: rms(F.pad(x, (0, 16)), getattr(n, m.eps))[..., : x.shape[-1]] * weight_of(m, n))
normed("port_norm_half_width", LLAMAS, "", lambda m, n,
       x: x * torch.rsqrt(x[..., : x.shape[-1] // 2].pow(2).mean(-1, True) + 1e-6) * weight_of(m, n))
normed("port_norm_of_all_tokens", LLAMAS, "", lambda m, n,
       x: x * torch.rsqrt(x.pow(2).mean((-1, -2), True) + 1e-6) * weight_of(m, n))
normed("port_norm_of_row_before", LLAMAS, "", lambda m, n,
       x: x * torch.rsqrt(x.pow(2).mean(-1, True) + 1e-6).roll(1, 1) * weight_of(m, n))
normed("port_q_norm_of_all_heads", "qwen3", "N9", lambda m, n,
       x: x * torch.rsqrt(x.pow(2).mean((-1, -2), True) + 1e-6) * n.weight.float(), "q_norm", "{p}q_norm")
normed("port_q_norm_l2", "qwen3", "N5", lambda m, n, x: F.normalize(x, dim=-1) * n.weight.float(), "q_norm",
       "{p}q_norm")
normed("port_layer_norm_ms", "gpt2", "", lambda m, n, x: (x - x.mean(-1, keepdim=True))
       * torch.rsqrt(x.pow(2).mean(-1, True) + n.eps) * n.weight.float() + n.bias.float())
normed("port_layer_norm_eps_outside", "gpt2", "N2*", lambda m, n, x: (x - x.mean(-1, True))
       / (x.var(-1, unbiased=False, keepdim=True).sqrt() + 0.01) * n.weight.float() + n.bias.float())
normed("port_layer_norm_bias_twice", "gpt2", "", lambda m, n,
       x: F.layer_norm(x, x.shape[-1:], n.weight.float(), 2 * n.bias.float(), n.eps))

# ---- products and logits -------------------------------------------------------------------------


def scored(name, ids, f, families=ALL):
    """Calls f(m, x, weight) instead of the last product."""
    fault(name, families, "logits",
          ids)(lambda m: iter([(m.model.lm_head, "forward", lambda x: f(m, x, m.model.lm_head.weight))]))


scored("port_logits_bf16", "", lambda m, x, w: F.linear(x, w).bfloat16().to(x.dtype))
scored("port_logits_f16", "P1 P3", lambda m, x, w: F.linear(x, w).half().to(x.dtype))
scored("port_logits_bf16_product", "", lambda m, x, w: F.linear(x.bfloat16().float(), w.bfloat16().float()).to(x.dtype))
scored("port_logits_transposed", "W1b", lambda m, x, w: F.linear(x, w.T.contiguous().reshape(w.shape)))
scored("port_logits_transposed_back", "W1b", lambda m, x, w: F.linear(x, w.reshape(w.shape[1], w.shape[0]).T))
scored("port_logits_by_width", "M9*", lambda m, x, w: F.linear(x * x.shape[-1] ** -0.5, w))
scored("port_logits_capped_at_5", "M9*", lambda m, x, w: 5 * torch.tanh(F.linear(x, w) / 5))
scored("port_logits_log_softmax", "M9.log", lambda m, x, w: torch.log_softmax(F.linear(x, w).float(), -1).to(x.dtype))
scored("port_logits_of_row_before", "P14 M8", lambda m, x, w: F.linear(torch.cat((x[:, :1], x[:, :-1]), 1), w))
scored("port_logits_shifted_by_one_id", "P18*", lambda m, x, w: F.linear(x, w.roll(1, 0)))


@fault("port_logits_before_norm", ALL, "logits", "P22 N16*")
def _(m):
    before, norm = [], m.final.forward
    yield m.final, "forward", lambda x: (before.append(x), norm(x))[1]
    yield m.model.lm_head, "forward", lambda x: F.linear(before[-1], m.model.lm_head.weight)


@fault("port_up_before_norm", LLAMAS, "{p}up_proj", "P22")
def _(m):
    before, norm = [], m.mlp_norm.forward
    yield m.mlp_norm, "forward", lambda x: (before.append(x), norm(x))[1]
    yield m.mlp.up_proj, "forward", lambda x: F.linear(before[-1], m.mlp.up_proj.weight)


@fault("port_k_v_bias_exchanged", "qwen2", "{p}k_proj {p}v_proj", "W8")
def _(m):
    yield m.attn.k_proj, "forward", linear(m.attn.k_proj.weight, m.attn.v_proj.bias)
    yield m.attn.v_proj, "forward", linear(m.attn.v_proj.weight, m.attn.k_proj.bias)


@fault("port_k_bias_of_q", "qwen2", "{p}k_proj", "W8")
def _(m):
    yield m.attn.k_proj, "forward", linear(m.attn.k_proj.weight, m.attn.q_proj.bias[: m.attn.k_proj.bias.numel()])


@fault("port_down_bias_negated", "gpt2", "{p}down_proj", "W7*")
def _(m):
    yield m.down, "forward", linear(matrix(m.down), -m.down.bias)


def grouped(w, group, bits):
    g = w.float().reshape(w.shape[0], -1, group)
    scale = g.abs().amax(-1, True) / (2 ** (bits - 1) - 1)
    return ((g / scale).round() * scale).reshape(w.shape)


changed("port_rows_packed_by_eights", "llama mistral qwen2", "{p}gate_proj", "P18*", gate,
        lambda w: w.view(-1, 8, w.shape[1])[:, [0, 2, 4, 6, 1, 3, 5, 7]].reshape(w.shape))
changed("port_zero_point_off", LLAMAS, "{p}gate_proj", "", gate, lambda w: w + w.abs().mean())
changed("port_int4_groups", LLAMAS, "{p}gate_proj", "W15*", gate, lambda w: grouped(w, 8, 4))
changed("port_int8_columns", LLAMAS, "{p}gate_proj", "W15*", gate, lambda w: grouped(w.T, w.shape[0], 8).T)
changed("port_scales_of_next_row", LLAMAS, "{p}gate_proj", "", gate,
        lambda w: w / w.abs().amax(1, True) * w.abs().amax(1, True).roll(1, 0))
changed("port_last_rows_zero", LLAMAS, "{p}gate_proj", "", gate, lambda w: torch.cat((w[:-8], 0 * w[-8:])))
changed("port_middle_of_sum_missing", "llama qwen2", "{p}down_proj", "P15", down,
        lambda w: w.view(w.shape[0], 4, -1).mul(torch.tensor([1, 0, 1, 1.0]).to(w.dtype)[:, None]).reshape(w.shape))


@fault("port_last_rows_unwritten", ALL, "{p}down_proj", "P9")
def _(m):
    yield m.down, "forward", lambda x: F.linear(x, matrix(m.down),
                                                m.down.bias) * (torch.arange(x.shape[1]) < x.shape[1] - 5)[:, None]


# ---- activations ---------------------------------------------------------------------------------

activated("port_act_beta", "", lambda x: x * torch.sigmoid(1.2 * x))
activated("port_act_squared_relu", "M1", lambda x: F.relu(x) ** 2)
activated("port_act_by_table", "", lambda x: F.silu((x * 16).round() / 16))
activated("port_act_plus", "", lambda x: F.silu(x) + 0.05)
activated("port_act_tanh_without_cube", "", lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * x)), "gpt2")


def combined(name, ids, f):
    """f(m's mlp, x) is what its last product reads."""
    fault(name, ROTARY, "{p}mlp_act {p}gate_act {p}gate_proj {p}up_proj",
          ids)(lambda m: iter([(m.mlp, "forward", lambda x: m.mlp.down_proj(f(m.mlp, x)))]))


combined("port_up_plus_one", "", lambda n, x: n.act_fn(n.gate_proj(x)) * (n.up_proj(x) + 1))
combined("port_gate_plus_up", "", lambda n, x: n.act_fn(n.gate_proj(x)) + n.up_proj(x))
combined("port_up_twice", "", lambda n, x: n.act_fn(n.gate_proj(x)) * n.up_proj(x) ** 2)
combined("port_gate_clamped", "", lambda n, x: n.act_fn(n.gate_proj(x).clamp(max=0.8)) * n.up_proj(x))


# ---- attention -----------------------------------------------------------------------------------


@attends("port_scale_of_padded_head", "gpt2 " + LLAMAS, "A1*", origin=SOFTMAX)
def _(m, a):
    a.scaling = (2 * m.width) ** -0.5


@attends("port_scale_log_n", LLAMAS, "", origin=SOFTMAX)
def _(m, a):
    n = torch.arange(a.query.shape[2]) + 2.0
    a.scores = lambda s: s * (n.log() / math.log(16)).clamp(min=1).to(s.dtype)[:, None]


@attends("port_mask_of_minus_10", LLAMAS, "A4*", origin=PROBS)
def _(m, a):
    a.mask = a.mask.clamp(min=-10)


@attends("port_mask_transposed", LLAMAS, "", origin=PROBS)
def _(m, a):
    a.mask = a.mask.transpose(-1, -2)


def windowed(name, by, families="mistral"):
    @attends(name, families, "A5*", origin=PROBS)
    def _(m, a):
        i = torch.arange(a.query.shape[2])
        a.mask = masked(a, (i <= i[:, None]) & (i > i[:, None] - m.model.config.sliding_window - by))


windowed("port_window_wide", 1)
windowed("port_window_narrow", -1)


@attends("port_window_of_blocks", "llama qwen2", "A5* ", origin=PROBS)
def _(m, a):
    i = torch.arange(a.query.shape[2])
    a.mask = masked(a, (i <= i[:, None]) & (i // 16 >= i[:, None] // 16))


@attends("port_last_keys_lost", LLAMAS, "C* A*", origin=PROBS)
def _(m, a):
    n = a.query.shape[2]
    i, a.mask = torch.arange(64, n), a.mask.clone()
    a.mask[..., 64:] = lowest(a.query)
    a.mask[..., i, i] = 0


def exponentials(s):
    return torch.exp(s.float() - s.float().amax(-1, True))


def shared(name, ids, f, families=ALL):
    """Calls f(scores) instead of the softmax."""

    @attends(name, families, ids, origin=PROBS)
    def _(m, a):
        a.softmax = lambda s: f(s).to(s.dtype)


def by_sum(e, sum_of=lambda e: e.sum(-1, True)):
    return e / sum_of(e)


def wholly_f16(s):
    h = s.half()
    return by_sum(torch.exp(h - h.amax(-1, True)))


def by_blocks(s):
    """A softmax over blocks of 16 keys that does not rescale its sum when the maximum grows."""
    s, top, all_of = s.float(), torch.full((1,), -math.inf), []
    for block in s.split(16, -1):
        top = torch.maximum(top, block.amax(-1, True))
        all_of.append(torch.exp(block - top))
    return by_sum(torch.cat(all_of, -1))


shared("port_softmax_of_two", "A1*", lambda s: torch.softmax(s.float() * math.log(2), -1))
shared("port_softmax_exponentials_f16", "", lambda s: by_sum(exponentials(s).half().float()))
shared("port_softmax_exponentials_bf16", "", lambda s: by_sum(exponentials(s).bfloat16().float()))
shared("port_softmax_sum_f16", "", lambda s: by_sum(exponentials(s), lambda e: e.sum(-1, True).half().float()))
shared("port_softmax_sum_bf16", "", lambda s: by_sum(exponentials(s), lambda e: e.sum(-1, True).bfloat16().float()))
shared("port_softmax_wholly_f16", "", wholly_f16)
shared("port_softmax_plus_one", "", lambda s: by_sum(exponentials(s), lambda e: 1 + e.sum(-1, True)))
shared("port_softmax_by_blocks", "", by_blocks, "gpt2 " + LLAMAS)
shared("port_softmax_sigmoid", "", torch.sigmoid, LLAMAS)
shared("port_softmax_twice", "", lambda s: torch.softmax(torch.softmax(s.float(), -1), -1), LLAMAS)


@attends("port_values_head_map", "llama mistral qwen3", "A6 ", origin=SOFTMAX)
def _(m, a):
    a.value = a.value.repeat(1, a.query.shape[1] // a.value.shape[1], 1, 1)


@attends("port_key_heads_reversed", "llama mistral qwen3", "A6 ", origin=SOFTMAX)
def _(m, a):
    a.key, a.value = a.key.flip(1), a.value.flip(1)


@attends("port_alibi", "gpt2 " + LLAMAS, "", origin=SOFTMAX)
def _(m, a):
    n = a.query.shape[2]
    slopes = 2.0 ** -torch.arange(1, a.query.shape[1] + 1)[:, None, None]
    a.scores = lambda s: s - ((torch.arange(n)[:, None] - torch.arange(n)).abs() * slopes).to(s.dtype)


@attends("port_context_of_row_before", ALL, "P14")
def _(m, a):
    a.after = lambda o: torch.cat((o[:, :, :1], o[:, :, :-1]), 2)


@attends("port_heads_scaled", LLAMAS, "")
def _(m, a):
    a.after = lambda o: o * torch.linspace(0.9, 1.1, o.shape[1])[:, None, None].to(o.dtype)


def stepped(name, ids, f, families="llama qwen2 qwen3"):
    """f(a) in steps of one token."""

    @attends(name, families, ids, "steps", "last", "step*")
    def _(m, a):
        if a.query.shape[2] == 1:
            f(a)


def see_first_alone(a):
    a.mask = torch.full((1, 1, 1, a.key.shape[2]), lowest(a.query), dtype=a.query.dtype)
    a.mask[..., 0] = 0


def repeat_block(a):
    a.key, a.value = (torch.cat((t[:, :, :16], t[:, :, :16], t[:, :, 32:]), 2) for t in (a.key, a.value))


def drop_middle(a):
    S = a.key.shape[2]
    a.mask = torch.zeros(1, 1, 1, S, dtype=a.query.dtype)
    a.mask[..., 4 : S - 20] = lowest(a.query)


def stale_value(a):
    a.value = torch.cat((a.value[:, :, :-1], a.value[:, :, -2:-1]), 2)


stepped("port_steps_mask_top_left", "A3*", see_first_alone)
stepped("port_steps_block_repeated", "C* ", repeat_block, "llama qwen2 qwen3")
stepped("port_steps_middle_dropped", "A5* C* ", drop_middle)
stepped("port_steps_value_stale", "C*", stale_value)


@attends("port_chunk_sees_future", "llama qwen3", "A2* A3*", "chunks", "all", "*attn_probs *attn_context *attn_scores")
def _(m, a):
    if a.query.shape[2] < a.key.shape[2]:
        a.mask = None


@attends("port_keys_of_other_row", "llama qwen2", "C*", "padded", "last", SOFTMAX)
def _(m, a):
    a.key, a.value = a.key.flip(0), a.value.flip(0)


# ---- residuals, embedding ------------------------------------------------------------------------

block("port_residual_multiplier", "", "{p}attn_residual", lambda x, attn, first, second,
      mlp: after(x + 0.22 * attn(first(x)), second, mlp))
block("port_residual_doubled", "N14*", "{p}attn_residual", lambda x, attn, first, second,
      mlp: after(2 * x + attn(first(x)), second, mlp))
block("port_residual_bf16", "", "{p}attn_residual", lambda x, attn, first, second,
      mlp: after((x + attn(first(x))).bfloat16().to(x.dtype), second, mlp))
block("port_branch_subtracted", "", "{p}output", lambda x, attn, first, second,
      mlp: after(x + attn(first(x)), second, mlp, -1))
block("port_mlp_first", "N19", "{p}attn_norm {p}mlp_norm", lambda x, attn, first, second,
      mlp: (lambda y: y + attn(first(y)))(after(x, second, mlp)))


def embedded(name, ids, f):
    fault(name, ALL, "embed token_embed", ids)(lambda m: iter([(m.embed, "forward", lambda x: f(x, m.embed.weight))]))


embedded("port_embed_normed", "", lambda x, w: F.normalize(F.embedding(x, w).float(), dim=-1).to(w.dtype))
embedded("port_embed_bf16", "", lambda x, w: F.embedding(x, w).bfloat16().to(w.dtype))
embedded("port_embed_int8", "W15*", lambda x, w: int8(F.embedding(x, w)).to(w.dtype))
embedded("port_embed_small_vocabulary", "", lambda x, w: F.embedding(x.clamp(max=300), w))

# ---- the delta rule ------------------------------------------------------------------------------


@rule("port_delta_beta_twice", "G4.two", "layer0.gdn_*")
def _(m, original, query, key, value, more):
    return original(query, key, value, **{**more, "beta": more["beta"] + more["beta"]})


@rule("port_delta_decay_sign", "G1.positive", "layer0.gdn_*")
def _(m, original, query, key, value, more):
    return original(query, key, value, **{**more, "g": -more["g"]})


@rule("port_delta_keys_unnormed", "G5.missing", "layer0.gdn_*")
def _(m, original, query, key, value, more):
    query = query / (query.float().pow(2).sum(-1, True) + 1e-6).sqrt()
    return original(query.to(key.dtype), key, value, **{**more, "use_qk_l2norm_in_kernel": False})


@rule("port_delta_scale_of_values", "G6", "layer0.gdn_*")
def _(m, original, query, key, value, more):
    y, state = original(query, key, value, **more)
    return y * (2 * query.shape[-1] / value.shape[-1]) ** 0.5, state


@rule("port_delta_heads_reversed", "", "layer0.gdn_*")
def _(m, original, query, key, value, more):
    return original(query, key, value.flip(2), **more)


convolved("port_conv_late", "P14 G13*", lambda original, x, weight, a,
          k: F.pad(original(x, weight, *a, **k), (1, 0))[..., :-1])
convolved("port_conv_ahead", "G13 P14", lambda original, x, weight, a,
          k: original(F.pad(x, (0, 1)), weight, *a, **k)[..., 1:])
convolved("port_conv_first_tap_lost", "", lambda original, x, weight, a,
          k: original(x, torch.cat((0 * weight[..., :1], weight[..., 1:]), -1), *a, **k))
convolved("port_conv_relu", "", lambda original, x, weight, a,
          k: F.relu(original(x, weight, *a, **{**k, "activation": None})))
