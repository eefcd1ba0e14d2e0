"""outside_calls.py: mistakes made in transformers from outside, as outside_faults.py has them: places and numbers
inside one call.

Positions of a call, 64-bit integers read as 32-bit, tables rolled by one, masks by blocks and windows by calls, heads
and fused parts in another order, a softmax whose maximum starts at 0, norms that round 1 / rms. Importing this module
adds them to FAULTS.
"""
import torch
import torch.nn.functional as F

from outside_alike import places, sees
from outside_attention import attends
from outside_faults import LLAMAS, ROTARY, SURE, WHOLE, angled, changed, fault, linear, normed, out, rotation

PROBS = "*attn_probs *attn_context"


def added(name, *more):
    SURE.add(name)
    return (name, *more)


# ---- positions -----------------------------------------------------------------------------------


def words(x):
    """64-bit integers of a call, read as if they had 32 bits."""
    return torch.stack((x, 0 * x), -1).flatten(-2)[..., : x.shape[-1]]


for how in ("chunks", "uneven", "same calls"):
    angled(*added(f"call_offset_twice_{how.replace(' ', '_')}", "llama mistral qwen2 qwen3", "R3b.twice"),
           lambda m, inv, pos: (inv, pos + pos[:, :1]), how)
angled("call_offset_twice_steps", "llama qwen2 qwen3", "R3b.twice R5* R10*", lambda m, inv, pos:
       (inv, pos + pos[:, :1]), "steps")
angled(*added("call_offset_twice_chunks_steps", "mistral qwen3", "R3b.twice"),
       lambda m, inv, pos: (inv, pos + pos[:, :1]), "chunks steps")
for how in ("whole", "chunks", "steps", "uneven"):
    angled(*added(f"call_words_{how}", "llama qwen2 qwen3 qwen3_5_text", "R3.words"), lambda m, inv, pos:
           (inv, words(pos)), how)
for how in ("whole", "chunks"):
    angled(*added(f"call_theta_from_{how}", "mistral qwen2 qwen3", "R2*"), lambda m, inv, pos: (torch.where(
        pos.flatten()[:, None] >= 35, 3e4 ** (-torch.arange(len(inv)) / len(inv)), inv), pos), how)
for how in ("whole", "chunks", "steps"):
    angled(*added(f"call_pairs_next_{how}", "mistral qwen2 qwen3", "R16.next"), lambda m, inv, pos:
           (inv.roll(-1), pos), how)
angled(*added("call_pairs_before", "llama qwen2 qwen3 qwen3_5_text", "R16.before R16.next"), lambda m, inv, pos:
       (inv.roll(1), pos))


@rotation(*added("call_pairs_of_keys", "llama qwen3", "R16.next"), origin="layer*.k_rope")
def _(m, original, q, k, cos, sin):
    rolled = [torch.cat([t[..., : t.shape[-1] // 2].roll(-1, -1)] * 2, -1) for t in (cos, sin)]
    return original(q, k, cos, sin)[0], original(q, k, *rolled)[1]


@fault(*added("call_embed_words", "gpt2 llama qwen2 qwen3_5_text"), "embed token_embed", "M5.words")
def _(m):
    yield m.embed, "forward", lambda ids: F.embedding(words(ids), m.embed.weight)


@fault(*added("call_embed_words_chunks", "gpt2 llama qwen2"), "embed token_embed", "M5.words", "chunks")
def _(m):
    yield m.embed, "forward", lambda ids: F.embedding(words(ids), m.embed.weight)


@fault(*added("call_learned_words", "gpt2"), "pos_embed", "R15.words")
def _(m):
    yield m.body.wpe, "forward", lambda ids: F.embedding(words(ids), m.body.wpe.weight)


@fault(*added("call_learned_words_chunks", "gpt2"), "pos_embed", "R15.words", "chunks")
def _(m):
    yield m.body.wpe, "forward", lambda ids: F.embedding(words(ids), m.body.wpe.weight)


@fault(*added("call_learned_twice", "gpt2"), "pos_embed", "R15.twice", "uneven")
def _(m):
    yield m.body.wpe, "forward", lambda ids: F.embedding(ids + ids[:, :1], m.body.wpe.weight)


# ---- masks ---------------------------------------------------------------------------------------


def window_of(m, a):
    """The window of an attention's layer; None: it has none."""
    return m.model.config.sliding_window if m.family == "mistral" else None


def blocked(name, families, B, how):
    @attends(*added(name, families), "A3.blocks", how, "all", PROBS)
    def _(m, a):
        i, j = places(a)
        i = i + a.key.shape[2] - a.query.shape[2]
        seen = j // B <= i // B
        w = window_of(m, a)
        sees(a, seen & (j > i - w) if w else seen)


blocked("call_blocks_of_16", "llama qwen2 qwen3 mistral gpt2", 16, "whole")
blocked("call_blocks_of_8", "llama qwen2 gpt2", 8, "whole")
blocked("call_blocks_of_32", "qwen2 qwen3", 32, "whole")
blocked("call_blocks_of_16_steps", "llama qwen3", 16, "steps")
blocked("call_blocks_of_16_calls", "llama qwen3", 16, "same calls")


@attends(*added("call_prefix_of_12", "llama qwen2 gpt2"), "A3.prefix", "whole", "all", PROBS)
def _(m, a):
    i, j = places(a)
    sees(a, (j <= i) | (j < 12))


def windowed(name, how, ids, f):
    """f(first place of the call, last place) -> the place behind which all queries of the call see."""

    @attends(name, "mistral", ids, how, "all", PROBS)
    def _(m, a):
        i, j = places(a)
        past = a.key.shape[2] - a.query.shape[2]
        w = window_of(m, a)
        seen = (j <= i + past) & (j > f(past, a.key.shape[2] - 1) - w)
        sees(a, seen)
        a.softmax = lambda s: torch.softmax(s.float(), -1).masked_fill(~seen, 0.0).to(s.dtype) # no key: 0

    SURE.add(name)


for how in ("chunks", "uneven", "same calls", "chunks steps"):
    windowed(f"call_window_of_first_{how.replace(' ', '_')}", how, "A5.call", lambda first, last: first)
    windowed(f"call_window_of_last_{how.replace(' ', '_')}", how, "A5.overwritten", lambda first, last: last)
windowed("call_window_of_first_steps", "steps", "A5.call A5.missing", lambda first, last: first)


# ---- orders --------------------------------------------------------------------------------------


def by_place(m, w, back=False):
    H, G = m.heads, m.kv_heads
    a, b = (H // G, G) if back else (G, H // G)
    return w.view(w.shape[0], a, b, -1).transpose(1, 2).reshape(w.shape)


@fault(*added("call_out_by_place", "llama mistral qwen2 qwen3"), "{p}attn_out", "A18 A18.back")
def _(m):
    yield m.out, "forward", linear(by_place(m, m.out.weight), m.out.bias)


@fault(*added("call_out_by_place_back", "llama mistral qwen2 qwen3"), "{p}attn_out", "A18.back A18")
def _(m):
    yield m.out, "forward", linear(by_place(m, m.out.weight, True), m.out.bias)


def stored(x, back):
    """(B,H,T,K): an array of heads before tokens, read as tokens before heads; back: the reverse."""
    B, H, T, K = x.shape
    return x.transpose(1, 2).reshape(B, H, T, K) if back else x.reshape(B, T, H, K).transpose(1, 2)


for of in ("query", "key", "value", "key value", "query key value"):
    for back in (False, True):

        @attends(*added(f"call_heads_first_{of.replace(' ', '_')}{'_back' * back}", "gpt2 llama mistral qwen2 qwen3"),
                 "A9*", "whole", "last", PROBS + " *attn_scores")
        def _(m, a, of=of, back=back):
            for part in of.split():
                setattr(a, part, stored(getattr(a, part), back))


def fused(order, ids, split="qkv"):
    """Stored in one order, split in another."""

    @fault(*added(f"call_fused_{order}_as_{split}", "llama mistral qwen2 qwen3"), "{p}q_proj {p}k_proj {p}v_proj", ids)
    def _(m):
        products = {"q": m.attn.q_proj, "k": m.attn.k_proj, "v": m.attn.v_proj}
        w = torch.cat([products[x].weight for x in order]).detach()
        bias = torch.cat([products[x].bias for x in order]).detach() if m.attn.q_proj.bias is not None else None
        sizes = [len(products[x].weight) for x in split]
        for x, part, b in zip(split, w.split(sizes), bias.split(sizes) if bias is not None else [None] * 3):
            yield products[x], "forward", linear(part, b)


for order in ("kqv", "kvq", "vqk", "vkq"):
    fused("qkv", "W2." + order, order)
    fused(order, "W2.stored_" + order)

# ---- softmax and norms ---------------------------------------------------------------------------


@attends(*added("call_softmax_from_zero", "llama qwen2 qwen3 gpt2"), "A12.zero", "whole", "all", PROBS)
def _(m, a):
    def softmax(s):
        top = s.float().amax(-1, True).clamp(min=0)
        e = torch.exp(s.float() - top)
        return (e.half().float() / e.sum(-1, keepdim=True)).to(s.dtype)

    a.softmax = softmax


WHOLE.add("call_softmax_from_zero")


def narrow(name, families, ids, dtype, whole=False, which="norm", origin="{p}attn_norm"):
    def f(m, n, x):
        eps = getattr(n, m.eps)
        if whole:
            ms = x.pow(2).to(dtype).mean(-1, keepdim=True)
            r = torch.rsqrt((ms + eps).float()).to(dtype).float() # torch rounds twice behind the last vector
        else:
            r = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps).to(dtype).float()
        return x * r * (1 + n.weight.float() if m.family == "qwen3_5_text" else n.weight.float())

    normed(name, families, ids, f, which, origin)


narrow("call_rms_bf16", ROTARY, "N21.bf16 N22.bf16", torch.bfloat16)
narrow("call_rms_f16", "llama qwen2 qwen3", "N21.f16 N22.f16", torch.float16)
narrow("call_rms_bf16_final", LLAMAS, "N21.bf16 N22.bf16", torch.bfloat16, False, "final", "final_norm")
narrow("call_squares_bf16", "llama qwen2 qwen3", "N22.bf16 N21.bf16", torch.bfloat16, True)
narrow("call_squares_f16", "llama qwen2 qwen3", "N22.f16 N21.f16", torch.float16, True)


# ---- distances between rows in memory ------------------------------------------------------------


def strided(x, rows, width, apart):
    """Rows that are so far apart in memory; what lies behind is 0."""
    flat = F.pad(x.reshape(-1), (0, max(0, (rows - 1) * apart + width - x.numel())))
    return torch.stack([flat[r * apart: r * apart + width] for r in range(rows)])


def led(name, families, origin, which, ids, f):
    @fault(name, families, origin, ids)
    def _(m):
        product = which(m)

        def forward(x):
            w, b = product.weight if m.family != "gpt2" else product.weight.T, product.bias
            T, (M, N) = x.shape[1], w.shape
            return f(m, x[0].reshape(T, N), w, b, T, M, N)[None]

        yield product, "forward", forward

    SURE.add(name)


def written(y, apart):
    """Rows written so far apart into a buffer, which is read as if it were packed."""
    to = torch.zeros(y.numel() + apart * len(y), dtype=y.dtype)
    for t, row in enumerate(y):
        to[t * apart: t * apart + len(row)] = row
    return to[: y.numel()].view(y.shape)


SOME = "llama mistral qwen2 qwen3"
led("call_lda_of_hidden", SOME, "{p}down_proj", lambda m: m.down, "W20*",
    lambda m, x, w, b, T, M, N: F.linear(strided(x, T, N, M), w, b))
led("call_lda_padded", SOME, "{p}down_proj", lambda m: m.down, "W20*",
    lambda m, x, w, b, T, M, N: F.linear(strided(x, T, N, N + 8), w, b))
led("call_lda_columns", SOME + " gpt2", "{p}down_proj", lambda m: m.down, "W20*",
    lambda m, x, w, b, T, M, N: F.linear(x.reshape(N, T).T, w, b))
led("call_ldb_of_hidden", SOME, "{p}down_proj", lambda m: m.down, "W20*",
    lambda m, x, w, b, T, M, N: F.linear(x, strided(w, M, N, M), b))
led("call_ldc_of_hidden", SOME, "{p}gate_proj", lambda m: m.mlp.gate_proj, "W20*",
    lambda m, x, w, b, T, M, N: written(F.linear(x, w, b), N))
led("call_ldc_fused", SOME, "{p}k_proj", lambda m: m.attn.k_proj, "W20*", lambda m, x, w, b, T, M, N: torch.cat(
    (F.linear(x, w, b), F.linear(x, m.attn.v_proj.weight, m.attn.v_proj.bias)), 1).reshape(-1)[: T * M].view(T, M))
led("call_ldc_padded", SOME + " gpt2", "{p}down_proj", lambda m: m.down, "W20*",
    lambda m, x, w, b, T, M, N: written(F.linear(x, w, b), M + 16))
