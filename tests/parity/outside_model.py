"""outside_model.py: mistakes made in transformers from outside, as outside_faults.py has them, around the operations:
residuals, the order within a layer, the embedding and the logits, the delta rule. Importing this module adds them to
FAULTS.
"""
import math

import torch
import torch.nn.functional as F

from outside_faults import ALL, LLAMAS, SURE, fault, matrix


# ---- residuals, embedding, logits ----------------------------------------------------------------


def block(name, ids, origin, f):
    """Calls f(x, attention, its norm, the other norm, mlp) instead of a layer."""

    @fault(name, LLAMAS, origin, ids)
    def _(m):
        attn, first, second, mlp = m.layer.self_attn, m.layer.input_layernorm, m.layer.post_attention_layernorm, m.mlp
        yield m.layer, "forward", lambda hidden_states, **more: f(hidden_states, lambda x:
                                                                  attn(hidden_states=x, **more)[0], first, second, mlp)


def after(x, norm, mlp, sign=1):
    return x + sign * mlp(norm(x))


block("residual_missing", "N14.missing", "{p}attn_residual", lambda x, attn, first, second,
      mlp: after(attn(first(x)), second, mlp))
block("residual_normed", "N13", "{p}attn_residual", lambda x, attn, first, second,
      mlp: (lambda y: after(y + attn(y), second, mlp))(first(x)))
block("residual_of_input", "N14.input", "{p}output", lambda x, attn, first, second,
      mlp: x + mlp(second(x + attn(first(x)))))
block("parallel_block", "N19", "{p}mlp_norm {p}attn_residual", lambda x, attn, first, second,
      mlp: x + attn(first(x)) + mlp(second(x)))


@fault("sum_normed", "gemma2", "{p}attn_post_norm {p}attn_residual", "N15.post N14*")
def _(m):
    n = m.layer

    def forward(hidden_states, **more):
        x = n.post_attention_layernorm(hidden_states + n.self_attn(
            hidden_states=n.input_layernorm(hidden_states), **more)[0])
        return x + n.post_feedforward_layernorm(n.mlp(n.pre_feedforward_layernorm(x)))

    yield n, "forward", forward


SURE.add("sum_normed")


@fault("embed_scaled", ALL, "embed token_embed", "M4")
def _(m):
    yield m.embed, "forward", lambda ids: F.embedding(ids, m.embed.weight) * math.sqrt(m.model.config.hidden_size)


@fault("embed_next_id", ALL, "embed token_embed", "M5*")
def _(m):
    yield m.embed, "forward", lambda ids: F.embedding((ids + 1) % 512, m.embed.weight)


@fault("embed_of_positions", LLAMAS, "embed", "M5")
def _(m):
    yield m.embed, "forward", lambda ids: F.embedding(torch.arange(ids.shape[1])[None], m.embed.weight)


@fault("embed_of_positions_in_steps", "llama qwen2", "step*embed", "M5", "steps")
def _(m):
    original, at = m.embed.forward, [0]

    def forward(ids):
        first = at[0]
        at[0] += ids.shape[1]
        return F.embedding(torch.tensor([[first]]), m.embed.weight) if ids.shape[1] == 1 else original(ids)

    yield m.embed, "forward", forward


@fault("logits_capped", ALL, "logits", "M9.cap")
def _(m):
    yield m.model.lm_head, "forward", lambda x: 30 * torch.tanh(F.linear(x, m.model.lm_head.weight) / 30)


@fault("logits_scaled", ALL, "logits", "M9* ")
def _(m):
    yield m.model.lm_head, "forward", lambda x: F.linear(x, m.model.lm_head.weight) / 1.3


@fault("positions_from_one", "gpt2", "pos_embed", "R15* ")
def _(m):
    yield m.body.wpe, "forward", lambda ids: F.embedding(ids + 1, m.body.wpe.weight)


@fault("positions_not_added", "gpt2", "pos_embed", "R15* ")
def _(m):
    yield m.body.wpe, "forward", lambda ids: 0 * F.embedding(ids, m.body.wpe.weight)


@fault("nan_in_one_token", ALL, "{p}down_proj", "")
def _(m):
    yield m.down, "forward", lambda x: F.linear(x, matrix(m.down), m.down.bias).masked_fill(
        (torch.arange(x.shape[1]) == 5)[:, None], float("nan"))


@fault("overflow_in_act", "qwen2 llama", "{p}mlp_act", "P1*")
def _(m):
    n = m.mlp

    def forward(x):
        y = n.act_fn(n.gate_proj(x)) * n.up_proj(x)
        return n.down_proj(torch.where(y.abs() > y.abs().max() / 2, math.copysign(math.inf, 1) * y.sign(), y))

    yield n, "forward", forward


# ---- the delta rule ------------------------------------------------------------------------------


def rule(name, ids, origin, call="whole"):
    """f(m, original, query, key, value, more) in the place of the delta rule, in every layer that has one."""

    def add(f):
        def make(m):
            for at in ("torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule"):
                original = getattr(m.source, at)
                yield m.source, at, lambda query, key, value, original=original, **more: f(
                    m, original, query, key, value, more)

        fault(name, "qwen3_5_text", origin, ids, call)(make)
        return f

    return add


GDN = "layer0.gdn_out layer0.gdn_context layer0.gdn_*"


@rule("delta_no_decay", "G7.none", GDN)
def _(m, original, query, key, value, more):
    return original(query, key, value, **{**more, "g": 0 * more["g"]})


@rule("delta_beta_one", "G4.two", GDN)
def _(m, original, query, key, value, more):
    return original(query, key, value, **{**more, "beta": 2 * more["beta"]})


@rule("delta_no_l2", "G5.missing", GDN)
def _(m, original, query, key, value, more):
    return original(query, key, value, **{**more, "use_qk_l2norm_in_kernel": False})


@rule("delta_repeat", "G10", GDN)
def _(m, original, query, key, value, more):
    times = query.shape[2] // m.model.config.linear_num_key_heads
    return original(*(t[:, :, ::times].repeat(1, 1, times, 1) for t in (query, key)), value, **more)


@rule("delta_no_scale", "G6", GDN)
def _(m, original, query, key, value, more):
    y, state = original(query, key, value, **more)
    return y * query.shape[-1] ** 0.5, state


@rule("delta_state_lost", "G16.calls", "step*gdn_*", "steps")
def _(m, original, query, key, value, more):
    return original(query, key, value, **{**more, "initial_state": None})


def convolved(name, ids, f):
    def make(m):
        original = m.source.causal_conv1d_fn
        yield m.source, "causal_conv1d_fn", lambda x, weight, *a, **k: f(original, x, weight, a, k)

    fault(name, "qwen3_5_text", "layer0.gdn_conv", ids)(make)


convolved("conv_reversed", "G11", lambda original, x, weight, a, k: original(x, weight.flip(-1), *a, **k))
convolved("conv_no_silu", "G12", lambda original, x, weight, a, k: original(x, weight, *a, **{**k, "activation": None}))
