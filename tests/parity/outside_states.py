"""outside_states.py: mistakes made in transformers from outside, as outside_faults.py has them, in what Gated DeltaNet
keeps from call to call: the rule of decoding alone, its state, and the window of its convolution. Importing this module
adds them to FAULTS.
"""
import torch
from transformers import cache_utils

from outside_faults import SURE, fault
from outside_model import GDN, rule

STEP = "step*gdn_core step*gdn_state"
WINDOW = "step*gdn_conv step*gdn_q_conv step*gdn_conv_state"
RULES = ("torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule")


def recurrent(query, key, value, g, beta, initial_state=None, form="", **_):
    """The rule token by token, in float32, with a mistake of this form."""
    q, k, v, g, beta = (t.transpose(1, 2).float() for t in (query, key, value, g, beta))
    if form != "not normed":
        q, k = (t * torch.rsqrt((t * t).sum(-1, keepdim=True) + 1e-6) for t in (q, k))
    q = q / q.shape[-1] ** 0.5
    state = torch.zeros(*k.shape[:2], k.shape[-1], v.shape[-1]) if initial_state is None else initial_state.float()
    out = torch.zeros_like(v)
    beta = torch.ones_like(beta) if form == "no beta" else beta
    for i in range(v.shape[2]):
        b, kt = beta[:, :, i, None], k[:, :, i, :, None]
        decay = {"no decay": torch.ones_like(g), "positive": (-g).exp(), "factor": g}.get(form, g.exp())
        decay = decay[:, :, i, None, None]
        old = state
        state = state if form == "late" else state * decay
        memory = (form != "no delta") * ((old if form == "memory first" else state) * kt).sum(-2)
        new = {"beta keys": v[:, :, i] - b * memory, "beta values": b * v[:, :, i] - memory,
               "beta twice": 2 * b * (v[:, :, i] - memory)}.get(form, b * (v[:, :, i] - memory))
        before, state = state, state + kt * new[:, :, None]
        state = state * decay if form == "late" else state
        out[:, :, i] = ((before if form == "read first" else state) * q[:, :, i, :, None]).sum(-2)
    return out.transpose(1, 2).to(query.dtype), state


def decoding(name, ids, form):
    """The rule of calls of one token has this mistake, and that of the prompt is right."""

    def make(m):
        yield m.source, RULES[1], lambda *a, **more: recurrent(*a, **{**more, "form": form})

    fault(name, "qwen3_5_text", STEP, ids, "steps")(make)
    SURE.add(name)


decoding("decode_no_decay", "G7.none", "no decay")
decoding("decode_positive", "G1.positive", "positive")
decoding("decode_factor", "G7.factor", "factor")
decoding("decode_decay_late", "G7.late", "late")
decoding("decode_read_first", "G8.output", "read first")
decoding("decode_memory_first", "G8.memory", "memory first")
decoding("decode_no_delta", "G9", "no delta")
decoding("decode_beta_keys", "G4.k", "beta keys")
decoding("decode_beta_values", "G4.v", "beta values")
decoding("decode_beta_twice", "G4.two", "beta twice")
decoding("decode_no_beta", "G4.one", "no beta")
decoding("decode_not_normed", "G5.missing", "not normed")


def kept(name, ids, f, call="steps", origin=STEP, sure=True):
    """f(state that a call finds, how many tokens the call has, a dict that lasts) -> the state that it reads."""

    def make(m):
        for at in RULES:
            original, lasting = getattr(m.source, at), {}

            def rule(query, *a, original=original, initial_state=None, **more):
                if initial_state is not None:
                    initial_state = f(initial_state, query.shape[1], lasting)
                return original(query, *a, initial_state=initial_state, **more)

            yield m.source, at, rule

    fault(name, "qwen3_5_text", origin, ids, call)(make)
    if sure:
        SURE.add(name)


for more, call in {"chunks": "chunks", "uneven": "uneven", "beside": "same calls"}.items():
    kept(f"state_not_carried_{more}", "G16.calls", lambda s, n, last: 0 * s, call, GDN + " layer*.gdn_core *gdn_state")
kept("state_not_carried_and_steps", "G16.calls", lambda s, n, last: 0 * s if n > 1 else s, "chunks steps",
     GDN + " *gdn_core")
kept("state_of_steps_lost", "G16.calls", lambda s, n, last: 0 * s)
kept("state_bf16", "G19*", lambda s, n, last: s.bfloat16().to(s.dtype), sure=False)
kept("state_f16", "G19*", lambda s, n, last: s.half().to(s.dtype), sure=False)
kept("state_e4m3", "G19*", lambda s, n, last: s.to(torch.float8_e4m3fn).to(s.dtype), sure=False)
kept("state_heads_rolled", "G19.heads", lambda s, n, last: s.roll(1, 1))
kept("state_heads_reversed", "G19*", lambda s, n, last: s.flip(1))
kept("state_halved", "G19*", lambda s, n, last: 0.5 * s)
kept("state_halved_in_chunks", "G19*", lambda s, n, last: 0.5 * s, "chunks", GDN + " layer*.gdn_core *gdn_state")
kept("state_times_3", "G19*", lambda s, n, last: 3 * s)
kept("state_transposed", "G19*", lambda s, n, last: s.transpose(-1, -2).contiguous().view(s.shape))


def convolved_later(name, ids, f, call="steps", origin=WINDOW, sure=True):
    """f(window that a call of one token finds) -> the window that it reads."""

    def make(m):
        original = m.source.causal_conv1d_update

        def update(hidden_states, conv_state, *a, **more):
            conv_state.copy_(f(conv_state))
            return original(hidden_states, conv_state, *a, **more)

        yield m.source, "causal_conv1d_update", update

    fault(name, "qwen3_5_text", origin, ids, call)(make)
    if sure:
        SURE.add(name)


@rule("delta_g_bf16", "G21.bf16", GDN)
def _(m, original, query, key, value, more):
    return original(query, key, value, **{**more, "g": more["g"].bfloat16().float()})


convolved_later("window_lost", "G13.lost", lambda w: 0 * w)
convolved_later("window_moved", "G19*", lambda w: torch.cat((w[..., 1:], w[..., -1:]), -1))


def of_layers(name, ids, f, sure=True):
    """f(what a layer's earlier calls of one token were given, oldest first: (state, their arguments)) -> the state."""

    def make(m):
        original, calls, layers = getattr(m.source, RULES[1]), [], m.model.config.layer_types.count("linear_attention")

        def rule(query, key, value, initial_state=None, **more):
            calls.append((initial_state.clone(), (query, key, value), more))
            state = f(calls[(len(calls) - 1) % layers :: layers])
            return original(query, key, value, initial_state=state, **more)

        yield m.source, RULES[1], rule

    fault(name, "qwen3_5_text", STEP, ids, "steps")(make)
    if sure:
        SURE.add(name)


of_layers("state_of_prompt", "G19*", lambda calls: calls[0][0])
of_layers("state_one_call_late", "G19*", lambda calls: calls[-2 if len(calls) > 1 else -1][0])
of_layers("state_advanced_twice", "G19*", lambda calls: recurrent(
    *calls[-2][1], initial_state=calls[-1][0], **calls[-2][2])[1] if len(calls) > 1 else calls[-1][0])


of_layers("state_of_two_drafts", "G19*", lambda calls: recurrent(
    *calls[-2][1], initial_state=recurrent(*calls[-2][1], initial_state=calls[-1][0], **calls[-2][2])[1],
    **calls[-2][2])[1] if len(calls) > 1 else calls[-1][0])


def begun(name, ids, f):
    """f(rule, query, key, value, more) -> the state that the prompt begins with, in place of an empty one."""

    def make(m):
        original = getattr(m.source, RULES[0])

        def rule(query, key, value, initial_state=None, **more):
            return original(query, key, value, initial_state=f(original, query, key, value, more), **more)

        yield m.source, RULES[0], rule

    fault(name, "qwen3_5_text", GDN + " layer*.gdn_core *gdn_state", ids)(make)
    SURE.add(name)


def of_first_token(original, query, key, value, more):
    first = lambda t: t[:, :1].repeat(1, 8, *[1] * (t.ndim - 2))
    return recurrent(first(query), first(key), first(value), first(more["g"]), first(more["beta"]))[1]


begun("state_not_cleared", "G19.former", lambda original, query, key, value, more: original(
    query, key, value, initial_state=None, **{**more, "output_final_state": True})[1])
begun("state_of_padding", "G19.padding", of_first_token)


@fault("padding_reaches_state", "qwen3_5_text", "layer0.gdn_conv", "G19*", "padded")
def _(m):
    yield m.source, "apply_mask_to_padding_states", lambda hidden_states, attention_mask: hidden_states


SURE.add("padding_reaches_state")
for more, call in {"chunks": "chunks", "uneven": "uneven"}.items():

    @fault(f"window_not_carried_{more}", "qwen3_5_text", "layer0.gdn_conv layer0.gdn_q_conv", "G13.lost", call)
    def _(m):
        layer = cache_utils.LinearAttentionLayer
        original = layer.update_conv_state

        def update(self, conv_states, state_idx=0, **more):
            if self.has_previous_state[state_idx]:
                self.conv_states[state_idx].zero_()
            return original(self, conv_states, state_idx, **more)

        yield layer, "update_conv_state", update

    SURE.add(f"window_not_carried_{more}")


@fault("packed_states_leak", "qwen3_5_text", "layer0.gdn_conv", "G19*", "packed")
def _(m):
    return ()  # so does transformers 5.17, without the kernels of flash-linear-attention


SURE.add("packed_states_leak")
