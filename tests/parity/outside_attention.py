"""outside_attention.py: mistakes made in transformers from outside, as outside_faults.py has them: what attention is
given, its mask, softmax and formats, and what it reads from a cache. Importing this module adds them to FAULTS.
"""
import types

import torch

from outside_faults import ALL, LLAMAS, SURE, fault, int8, tf32, tf32_cut


def attends(name, families, ids, call="whole", layers="last", origin="{p}attn_context"):
    """f(m, a) changes what attention is given and how it works: a namespace of query, key, value, mask, scaling, scores
    (with the model's cap), softmax, after."""

    def add(f):
        def make(m):
            original = m.source.eager_attention_forward

            def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **more):
                cap = more.get("softcap")
                if layers == "last" and module is not m.attn:
                    return original(module, query, key, value, attention_mask, scaling=scaling, dropout=dropout, **more)
                a = types.SimpleNamespace(query=query, key=key, value=value, mask=attention_mask, scaling=scaling,
                                          module=module,
                                          scores=lambda s: torch.tanh(s / cap) * cap if cap else s, read=lambda w: w,
                                          repeat=lambda t: t.repeat_interleave(query.shape[1] // t.shape[1], 1),
                                          softmax=lambda s: torch.softmax(s.float(), -1).to(s.dtype), after=lambda o: o,
                                          before=query.shape[2] < key.shape[2])
                f(m, a)
                s = a.scores(torch.matmul(a.query, a.repeat(a.key).transpose(2, 3)) * a.scaling)
                if a.mask is not None:
                    s = s + a.mask[..., : s.shape[-1]]
                w = a.softmax(s)
                return a.after(torch.matmul(a.read(w.to(a.value.dtype)),
                                            a.repeat(a.value))).transpose(1, 2).contiguous(), w

            yield m.source, "eager_attention_forward", attention

        fault(name, families, origin, ids, call)(make)
        return f

    return add


SOFTMAX = "{p}attn_scores {p}attn_probs {p}attn_context"


@attends("no_scale", ALL, "A1.missing", origin=SOFTMAX)
def _(m, a):
    a.scaling = 1.0


@attends("scale_twice", ALL, "A1.twice", origin=SOFTMAX)
def _(m, a):
    a.scaling = a.scaling**2


@attends("scale_of_model", LLAMAS, "A1.hidden", origin=SOFTMAX)
def _(m, a):
    a.scaling = m.model.config.hidden_size**-0.5


@attends("scale_by_width", LLAMAS, "A1.head A1.twice", origin=SOFTMAX)
def _(m, a):
    a.scaling = 1 / m.width


@attends("scale_number", LLAMAS, "A1*", origin=SOFTMAX)
def _(m, a):
    a.scaling = 0.3


@attends("no_mask", LLAMAS + " gpt2", "A2 A2+A5.missing", origin="{p}attn_probs {p}attn_context")
def _(m, a):
    a.mask = None


@attends("mask_ahead", LLAMAS, "A3.ahead A3.ahead+A5.narrow", origin="{p}attn_probs {p}attn_context")
def _(m, a):
    window, j = getattr(m.model.config, "sliding_window", None) or 1000, torch.arange(a.query.shape[2])
    i = j[:, None] + 1
    a.mask = torch.zeros(len(j), len(j)).masked_fill(~((j <= i) & (j > i - window)),
                                                     torch.finfo(a.query.dtype).min)[None, None].to(a.query.dtype)


@attends("mask_zero", LLAMAS, "A4", origin="{p}attn_probs {p}attn_context")
def _(m, a):
    hidden, a.mask = a.mask < -1, None
    a.scores = lambda s: s.masked_fill(hidden, 0.0)


@attends("window_missing", "mistral", "A5.missing", origin="{p}attn_probs {p}attn_context")
def _(m, a):
    T = a.query.shape[2]
    a.mask = torch.full((T, T), torch.finfo(a.query.dtype).min).triu(1)[None, None].to(a.query.dtype)


@attends("window_of_23", LLAMAS, "A5*", origin="{p}attn_probs {p}attn_context")
def _(m, a):
    T = a.query.shape[2]
    i, j = torch.arange(T)[:, None], torch.arange(T)
    a.mask = torch.zeros(T, T).masked_fill(~((j <= i) & (j > i - 23)),
                                           torch.finfo(a.query.dtype).min)[None, None].to(a.query.dtype)


@attends("head_map", LLAMAS, "A6", origin=SOFTMAX)
def _(m, a):
    a.repeat = lambda t: t.repeat(1, a.query.shape[1] // t.shape[1], 1, 1)


def rolled(name, families, ids, *parts, by=1):
    """Each head has what belongs to the one before it."""

    @attends(name, families, ids, origin=SOFTMAX)
    def _(m, a):
        for part in parts:
            setattr(a, part, getattr(a, part).roll(by, 1))

    SURE.add(name)


rolled("heads_of_queries_rolled", "gpt2 gemma2 llama qwen3", "A24.q", "query")
rolled("heads_of_keys_rolled", "gpt2 gemma2 llama qwen3", "A24.k", "key")
rolled("heads_of_values_rolled", "gpt2 gemma2 llama qwen3", "A24.v", "value")
rolled("heads_of_keys_and_values_rolled", "gpt2 llama qwen3", "A24.kv", "key", "value")
rolled("heads_of_queries_rolled_by_two", "gpt2 llama", "A24*", "query", by=2)


@attends("k_v_exchanged", ALL, "A11.kv", origin=SOFTMAX + " {p}k_cache {p}v_cache")
def _(m, a):
    a.key, a.value = a.value, a.key


@attends("softmax_f16", LLAMAS, "A13.soft* A13* A12.half", origin="{p}attn_probs {p}attn_context")
def _(m, a):
    a.softmax = lambda s: torch.softmax(s.half(), -1).to(s.dtype)


@attends("probs_bf16", LLAMAS, "A13.bf16", origin="{p}attn_probs {p}attn_context")
def _(m, a):
    a.softmax = lambda s: torch.softmax(s.float(), -1).bfloat16().to(s.dtype)


@attends("probs_f16", "llama qwen2 mistral qwen3", "A13.f16", origin="{p}attn_probs {p}attn_context")
def _(m, a):
    a.softmax = lambda s: torch.softmax(s.float(), -1).half().to(s.dtype)


@attends("softmax_one", ALL, "A22", origin="{p}attn_probs {p}attn_context")
def _(m, a):
    a.softmax = lambda s: (torch.exp(s.float()) / (1 + torch.exp(s.float()).sum(-1, keepdim=True))).to(s.dtype)


@attends("softmax_queries", LLAMAS, "A10.queries", origin="{p}attn_probs {p}attn_context")
def _(m, a):
    a.softmax = lambda s: torch.softmax(s.float(), -2).to(s.dtype)


@attends("logit_cap_50", LLAMAS, "", origin=SOFTMAX)
def _(m, a):
    a.scores = lambda s: 50 * torch.tanh(s / 50)


@attends("logit_cap_15", LLAMAS, "", origin=SOFTMAX)
def _(m, a):
    a.scores = lambda s: 15 * torch.tanh(s / 15)


@attends("cap_of_5", "gemma2", "A20*", origin=SOFTMAX)
def _(m, a):
    a.scores = lambda s: torch.tanh(s / 5) * 5


@attends("cap_before_scale", "gemma2", "", origin=SOFTMAX)
def _(m, a):
    by, cap, a.scaling = a.scaling, m.model.config.attn_logit_softcapping, 1.0
    a.scores = lambda s: torch.tanh(s / cap) * cap * by


@attends("scores_f16", "qwen2 llama", "P2*", origin=SOFTMAX)
def _(m, a):
    a.scores = lambda s: s.half().to(s.dtype)


def attends_in(name, families, ids, rounded):
    """Both products of attention read rounded numbers."""

    @attends(name, families, ids, origin=SOFTMAX)
    def _(m, a):
        a.query, a.key, a.value, a.read = rounded(a.query), rounded(a.key), rounded(a.value), rounded


attends_in("attention_tf32", ALL, "", lambda x: tf32(x).to(x.dtype))
attends_in("attention_tf32_cut", "llama gpt2", "", lambda x: tf32_cut(x).to(x.dtype))
attends_in("attention_bf16", ALL, "", lambda x: x.bfloat16().to(x.dtype))
attends_in("attention_f16", "llama gpt2", "", lambda x: x.half().to(x.dtype))


@attends("heads_innermost", ALL, "A8")
def _(m, a):
    a.after = lambda o: o.transpose(1, 3).reshape(o.shape[0], o.shape[2], o.shape[3], o.shape[1]).reshape(
        o.shape[0], o.shape[2], -1).view(o.shape[0], o.shape[2], o.shape[1], o.shape[3]).transpose(1, 2)


@attends("heads_before_tokens", ALL, "A9")
def _(m, a):
    a.after = lambda o: o.reshape(o.shape[0], o.shape[2], o.shape[1], o.shape[3]).transpose(1, 2)


@attends("heads_reordered", LLAMAS, " P18*")
def _(m, a):
    a.after = lambda o: torch.cat((o[:, 1:], o[:, :1]), 1)


@attends("head_zero", ALL, "")
def _(m, a):
    a.after = lambda o: torch.cat((o[:, :1] * 0, o[:, 1:]), 1)


@attends("mask_chunk_local", LLAMAS, "A3.chunk", "chunks", "all", "*attn_probs *attn_context")
def _(m, a):
    if a.query.shape[2] > 1:
        T, S = a.query.shape[2], a.key.shape[2]
        i, j = torch.arange(T)[:, None], torch.arange(S)
        a.mask = torch.zeros(T, S).masked_fill(j > i, torch.finfo(a.query.dtype).min)[None, None].to(a.query.dtype)


@attends("cache_unread_by_chunk", LLAMAS, "C5* ", "chunks", "all", "*attn_probs *attn_context *attn_scores")
def _(m, a):
    T, S = a.query.shape[2], a.key.shape[2]
    if S > T:
        a.mask = a.mask.clone()
        a.mask[..., : S - T] = torch.finfo(a.query.dtype).min


@attends("step_without_newest", LLAMAS, "A3* C5*", "steps", "last", "*attn_probs *attn_context *attn_scores")
def _(m, a):
    if a.query.shape[2] == 1:
        a.mask = torch.zeros(1, 1, 1, a.key.shape[2], dtype=a.query.dtype)
        a.mask[..., -1] = torch.finfo(a.query.dtype).min


@attends("step_slot_early", LLAMAS, "C1* C3* ", "steps", "last", "step*")
def _(m, a):
    if a.query.shape[2] == 1:
        a.key, a.value = (torch.cat((t[:, :, :-2], t[:, :, -1:], 0 * t[:, :, -1:]), 2) for t in (a.key, a.value))


@attends("steps_slot_early", "llama qwen2 qwen3", "C1* C3* ", "steps", "last", "step*")
def _(m, a):
    if a.query.shape[2] == 1:  # as in a cache that lives on: 62 tokens are the prompt
        a.key, a.value = (torch.cat((t[:, :, :61], t[:, :, 62:], 0 * t[:, :, -1:]), 2) for t in (a.key, a.value))


@attends("steps_slot_late", "llama qwen2 qwen3", "C1* C3* C5* ", "steps", "last", "step*")
def _(m, a):
    if a.query.shape[2] == 1:
        a.key, a.value = (torch.cat((t[:, :, :62], 0 * t[:, :, -1:], t[:, :, 62:-1]), 2) for t in (a.key, a.value))


@attends("steps_value_slot_early", "llama qwen2 qwen3", "C3", "steps", "last", "step*")
def _(m, a):
    if a.query.shape[2] == 1:
        a.value = torch.cat((a.value[:, :, :61], a.value[:, :, 62:], 0 * a.value[:, :, -1:]), 2)


@attends("step_slot_late", LLAMAS, "C1* C3* C5* ", "steps", "last", "step*")
def _(m, a):
    if a.query.shape[2] == 1:  # what was never written is 0
        a.key, a.value = (torch.cat((t[:, :, :-1], 0 * t[:, :, -1:]), 2) for t in (a.key, a.value))


@attends("last_step_length_stale", "llama qwen2 qwen3", "A3* C5* ", "steps", "last", "step.8/*")
def _(m, a):
    if a.query.shape[2] == 1 and a.key.shape[2] == 70:
        a.mask = torch.zeros(1, 1, 1, a.key.shape[2], dtype=a.query.dtype)
        a.mask[..., -1] = torch.finfo(a.query.dtype).min


@attends("last_step_slot_stale", "llama qwen2 qwen3", "C1* C3* ", "steps", "last", "step.8/*")
def _(m, a):
    if a.query.shape[2] == 1 and a.key.shape[2] == 70:
        a.key, a.value = (torch.cat((t[:, :, :-2], t[:, :, -1:], 0 * t[:, :, -1:]), 2) for t in (a.key, a.value))


@attends("step_key_alone_lost", "llama qwen2", "C* ", "steps", "last", "step*")
def _(m, a):
    if a.query.shape[2] == 1:
        a.key = a.key.clone()
        a.key[:, :, 16:20] = 0


@attends("step_block_lost", "llama qwen2 qwen3", "C* ", "steps", "last", "step*")
def _(m, a):
    if a.query.shape[2] == 1:
        a.key, a.value = a.key.clone(), a.value.clone()
        a.key[:, :, 16:32] = a.value[:, :, 16:32] = 0


@attends("step_value_alone_lost", "llama qwen2", "C* ", "steps", "last", "step*")
def _(m, a):
    if a.query.shape[2] == 1:
        a.value = a.value.clone()
        a.value[:, :, 17] = 0


@attends("step_cache_f8", "llama qwen2", "C7*", "steps", "last", "step*")
def _(m, a):
    if a.query.shape[2] == 1:
        a.key, a.value = (t.to(torch.float8_e4m3fn).to(t.dtype) for t in (a.key, a.value))


def cached(name, families, rounded):
    @attends(name, families, "C7*", "steps", "last", "step*")
    def _(m, a):
        if a.query.shape[2] == 1:
            a.key, a.value = (rounded(t).to(t.dtype) for t in (a.key, a.value))


cached("step_cache_int8", LLAMAS, int8)
cached("step_cache_f8_scaled", "llama qwen2",
       lambda t: (t.float() * 448 / t.float().abs().amax(-1, True)).to(torch.float8_e4m3fn).float()
       * t.float().abs().amax(-1, True) / 448)
cached("step_cache_bf16", "llama qwen2", lambda t: t.bfloat16())


@attends("padding_seen", "llama qwen2", "A14", "padded", "all", "layer0.attn_probs layer0.attn_context")
def _(m, a):
    T, S = a.query.shape[2], a.key.shape[2]
    i, j = torch.arange(T)[:, None] + S - T, torch.arange(S)
    a.mask = torch.zeros(T, S).masked_fill(j > i, torch.finfo(a.query.dtype).min)[None, None].to(a.query.dtype)


@attends("padding_seen_in_steps", "llama qwen2", "A14", "padded steps", "all",
         "step*layer0.attn_probs step*layer0.attn_context")
def _(m, a):
    if a.query.shape[2] == 1:
        a.mask = None
