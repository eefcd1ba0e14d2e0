"""outside_caches.py: mistakes made in transformers from outside, as outside_faults.py has them, that only a cache and
several calls show.

Prompts in calls of other lengths, with steps after them, or beside a reference in the same calls; one slot's key or
value in a cache that is read step by step; positions of some tokens, or of single tokens. Importing this module adds
them to FAULTS.
"""
import torch
from transformers import cache_utils

from outside_attention import attends
from outside_faults import FAULTS, LLAMAS, PLAIN, SURE, angled, fault, rotation

SOME = "llama qwen2 qwen3"
CALLS = {"uneven": "uneven", "and_steps": "chunks steps", "beside": "same calls"}


def lowest(x):
    return torch.finfo(x.dtype).min


def masked(a, seen):
    return torch.zeros(seen.shape).masked_fill(~seen, lowest(a.query))[None, None].to(a.query.dtype)


# ---- calls of several tokens ---------------------------------------------------------------------


def in_calls(name, families, ids, f):
    """f(a, positions of the queries, those of the keys, where the call begins) in calls of several tokens after the
    first."""
    for more, call in CALLS.items():

        def make(m, a):
            T, S = a.query.shape[2], a.key.shape[2]
            if 1 < T < S:
                f(a, torch.arange(S - T, S)[:, None], torch.arange(S), S - T)

        attends(f"{name}_{more}", families, ids, call, "all", "*attn_probs *attn_context *attn_scores")(make)
        SURE.add(f"{name}_{more}")


def own_tokens_alone(a, i, j, first):
    a.mask = masked(a, (j <= i) & (j >= first))


def counted_from_call(a, i, j, first):
    a.mask = masked(a, j <= i - first)


def sees_future(a, i, j, first):
    a.mask = masked(a, j >= 0)


in_calls("cache_unread", LLAMAS, "", own_tokens_alone)
in_calls("mask_from_call", SOME, "A3.chunk", counted_from_call)
in_calls("call_sees_future", SOME, "A2", sees_future)

for more, call in CALLS.items():
    angled(f"rope_from_zero_{more}", "llama qwen2", "R3*", lambda m, inv,
           pos: (inv, pos - pos[:, :1] if pos.shape[1] > 1 else pos), call)
    SURE.add(f"rope_from_zero_{more}")


@attends("cache_unread_by_all", SOME, " A5* C5*", "chunks steps", "all", "*attn_probs *attn_context *attn_scores")
def _(m, a):
    T, S = a.query.shape[2], a.key.shape[2]
    if T < S:
        own_tokens_alone(a, torch.arange(S - T, S)[:, None], torch.arange(S), S - T)


def unseen(name, first, end):
    """Calls after the first do not see the keys of tokens `first` to `end` - 1."""

    @attends(name, SOME, "A23", "chunks steps", "last", "*attn_probs *attn_context *attn_scores")
    def _(m, a):
        T, S = a.query.shape[2], a.key.shape[2]
        if T < S:
            i, j = torch.arange(S - T, S)[:, None], torch.arange(S)
            a.mask = masked(a, (j <= i) & ((j < first) | (j >= end)))


unseen("last_of_call_unseen", 30, 31)
unseen("first_of_call_unseen", 0, 20)


# ---- one slot ------------------------------------------------------------------------------------


def slot(name, families, ids, f, sure=True):
    """f(a, number of keys): in steps of one token, of 63 to 70 keys."""

    def make(m, a):
        if a.query.shape[2] == 1:
            a.key, a.value = a.key.clone(), a.value.clone()
            f(a, a.key.shape[2])

    attends(name, families, ids, "steps", "last", "step*")(make)
    if sure:
        SURE.add(name)


def put(t, to, x):
    t[:, :, to] = x


OTHER = torch.randn(64, generator=torch.Generator().manual_seed(3))

slot("slot_key_zero", SOME, "", lambda a, S: put(a.key, 61, 0))
slot("slot_key_of_one_head", "llama qwen3", "", lambda a, S: put(a.key[:, :1], 61, a.key[:, :1, 60]))
slot("slot_value_zero", SOME, "", lambda a, S: put(a.value, 61, 0))
slot("slot_key_of_neighbour", SOME, "", lambda a, S: put(a.key, 61, a.key[:, :, 60]))
slot("slot_value_of_neighbour", SOME, "", lambda a, S: put(a.value, 61, a.value[:, :, 60]))
slot("slot_of_neighbour", SOME, "", lambda a, S: (put(a.key, 61, a.key[:, :, 60]), put(a.value, 61, a.value[:, :, 60])))
slot("slot_key_of_later_step", SOME, "", lambda a, S: put(a.key, 64, a.key[:, :, 65]) if S > 66 else None)
slot("slot_value_of_later_step", SOME, "", lambda a, S: put(a.value, 64, a.value[:, :, 65]) if S > 66 else None,
     sure=False)
slot("slot_key_stale", SOME, "", lambda a, S: put(a.key, 61, OTHER[: a.key.shape[-1]].to(a.key.dtype)))
slot("slot_value_stale", "llama qwen3", "", lambda a, S: put(a.value, 61, OTHER[: a.value.shape[-1]].to(a.value.dtype)))
slot("slot_value_scaled", "llama qwen3", "", lambda a, S: put(a.value, 61, 2 * a.value[:, :, 61]))
slot("step_slot_key_lost", SOME, "", lambda a, S: put(a.key, 65, 0) if S > 66 else None)
slot("newest_key_of_last_step", SOME, "C3* C5*", lambda a, S: put(a.key, -1, a.key[:, :, -2]))
slot("newest_value_of_last_step", SOME, "C3* C5*", lambda a, S: put(a.value, -1, a.value[:, :, -2]))
slot("newest_of_last_step", SOME, "C5*", lambda a,
     S: (put(a.key, -1, a.key[:, :, -2]), put(a.value, -1, a.value[:, :, -2])))
slot("newest_key_zero", SOME, "C3* C5*", lambda a, S: put(a.key, -1, 0))
slot("newest_value_zero", SOME, "C3* C5*", lambda a, S: put(a.value, -1, 0))



# ---- slots that hold their own token, changed ----------------------------------------------------

PROMPT = 62  # tokens before the steps


def changed(name, ids, f, families=SOME, first=0, end=None, of="kv", sure=True, values=None):
    """f(keys or values (B,G,n,K)) -> what the cache holds of tokens `first` to `end` - 1 (None: all). values: another
    f, of values."""

    def change(a, S):
        for t, which in (("key", "k"), ("value", "v")):
            x = getattr(a, t)
            if which in of:
                x[:, :, first:end] = (values if values and which == "v" else f)(x[:, :, first:end])

    slot(name, families, ids, change, sure)


def bare(x, full, dtype):
    """Quantised with one scale for each token and head, and read without it."""
    x, most = x.float(), x.float().abs().amax(-1, keepdim=True)
    return (x / most * full).round() if dtype is None else (x / most * full).to(dtype).float()


def eight(x, by, back):
    """In int8 with the scale largest / by, read by the scale largest / back."""
    x = x.float()
    most = x.abs().amax(-1, keepdim=True)
    return (x / most * by).round().clamp(-127, 127) * most / back


for by, back in ((127, 127), (127.5, 127), (127, 127.5), (127.5, 127.5)):
    words = f"{by}_as_{back}".replace(".", "_")
    changed(f"cache_int8_{words}", "C7*", lambda x, by=by, back=back: eight(x, by, back), end=PROMPT, sure=False)
    changed(f"keys_int8_{words}", "C7*", lambda x, by=by, back=back: eight(x, by, back), of="k", sure=False)


def of_head(f):
    """The change in key head 1 alone."""
    return lambda x: torch.cat((x[:, :1], f(x[:, 1:2]), x[:, 2:]), 1)


changed("keys_int8_bare", "C7*", lambda x: bare(x, 127, None), of="k", end=PROMPT)
changed("values_int8_bare", "C7*", lambda x: bare(x, 127, None), of="v", end=PROMPT)
changed("cache_int8_bare", "C7*", lambda x: bare(x, 127, None), end=PROMPT)
changed("keys_e4m3_bare", "C7*", lambda x: bare(x, 448, torch.float8_e4m3fn), of="k", end=PROMPT,
        sure=False)  # so large that bfloat16 makes several scores equal
changed("keys_int8_bare_all", "C7*", lambda x: bare(x, 127, None), of="k", sure=False)
changed("keys_int8_bare_block", "C7*", lambda x: bare(x, 127, None), of="k", first=16, end=32, sure=False)
changed("keys_scaled_prompt", "C10*", lambda x: x * 0.1, of="k", end=PROMPT)
changed("keys_doubled_prompt", "C10*", lambda x: x * 2, of="k", end=PROMPT)
changed("values_scaled_prompt", "C10*", lambda x: x * 4, of="v", end=PROMPT)
changed("values_scaled_later", "C10*", lambda x: x / 3, of="v", first=PROMPT)
changed("keys_scaled_later", "C10*", lambda x: x * 1.5, of="k", first=PROMPT, sure=False)
changed("keys_scaled_block", "C10*", lambda x: x * 0.5, of="k", first=32, end=48, sure=False)
changed("keys_doubled_values_scaled", "C10*", lambda x: x * 2, values=lambda x: x * 4)
changed("keys_scaled_values_tripled", "C10*", lambda x: x * 0.7, values=lambda x: x * 3, end=PROMPT)
PLAIN.update(("keys_doubled_values_scaled", "keys_scaled_values_tripled"))
changed("keys_doubled", "C10*", lambda x: x * 2, of="k")
changed("values_scaled_head", "C10*", of_head(lambda x: x * 0.25), "llama qwen3", of="v", end=PROMPT)
changed("values_scaled_block_head", "C10*", of_head(lambda x: x * 3), "llama qwen3", of="v", first=32, end=48,
        sure=False)
changed("keys_scaled_run_head", "C10*", of_head(lambda x: x * 0.5), "llama qwen3", of="k", first=11, end=37, sure=False)
changed("block_empty_of_head", "C12", of_head(lambda x: 0 * x), "llama qwen3", first=0, end=32)
changed("slots_empty_of_head", "C12", of_head(lambda x: 0 * x), "llama qwen3", first=48, end=56, sure=False)
changed("run_empty_of_head", "C12", of_head(lambda x: 0 * x), "llama qwen3", first=11, end=27, sure=False)
slot("keys_blocks_exchanged", SOME, "C4", lambda a, S: put(a.key, slice(0, 32), a.key[:, :, :32].roll(16, 2)), False)
changed("values_e4m3_bare_run", "C7*", lambda x: bare(x, 448, torch.float8_e4m3fn), of="v", first=7, end=30)
changed("values_int8_bare_run_head", "C7*", of_head(lambda x: bare(x, 127, None)), "llama qwen3", of="v", first=9,
        end=41)
changed("keys_of_head_before", "C14*", lambda x: x.roll(1, 1), "llama qwen3", of="k", end=PROMPT)
changed("values_of_head_before", "C14*", lambda x: x.roll(1, 1), "llama qwen3 gemma2", of="v", end=PROMPT)
changed("slots_of_head_before", "C14*", lambda x: x.roll(1, 1), "llama qwen3", end=PROMPT)
changed("values_columns_exchanged", "C16*", lambda x: x.roll(x.shape[-1] // 2, -1), of="v", end=PROMPT)
changed("keys_columns_in_pairs", "C16*", lambda x: x.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2), of="k",
        end=PROMPT)
changed("keys_heads_first", "C6*", lambda x: x.reshape(1, PROMPT, x.shape[1], -1).transpose(1, 2), "llama qwen3",
        of="k", end=PROMPT)
changed("values_reversed", "C15*", lambda x: x.flip(2), of="v", end=PROMPT)
changed("values_empty_of_head", "C12", of_head(lambda x: 0 * x), "llama qwen3", of="v", first=0, end=16, sure=False)


def moved_slots(name, ids, by, which=("key", "value"), sure=True):
    """Tokens of the steps are written that many slots late (less than 0: early) into a cache that was 0."""

    def change(a, S):
        for x in which:
            t = getattr(a, x)
            new = t[:, :, PROMPT:]
            cache = torch.cat((t[:, :, :PROMPT], 0 * new, *[0 * new[:, :, :1]] * max(by, 0)), 2)
            cache[:, :, PROMPT + by : S + by] = new
            setattr(a, x, cache[:, :, :S])

    slot(name, SOME, ids, change, sure)


moved_slots("steps_2_slots_late", "C1.late C5*", 2)
moved_slots("steps_3_slots_early", "C1.early", -3)
moved_slots("steps_5_slots_early", "C1.early", -5)
moved_slots("steps_20_slots_early", "C1.early", -20)
moved_slots("steps_values_2_slots_early", "C3", -2, ("value",))


def stale_length(name, n):
    @attends(name, SOME, "C5.stale", "steps", "last", "*attn_probs *attn_context")
    def _(m, a):
        if a.query.shape[2] == 1:
            a.mask = torch.zeros(1, 1, 1, a.key.shape[2], dtype=a.query.dtype)
            a.mask[..., -n:] = lowest(a.query)

    SURE.add(name)


stale_length("length_stale_by_2", 2)
stale_length("length_stale_by_4", 4)


def twice(name, first, end=None):
    """Tokens `first` to `end` - 1 are in the cache twice. What is recorded are the probabilities of single ones."""

    def change(a, S):
        times = torch.ones(S)
        times[first:end] = 2
        a.read = lambda w: (w * times / (w * times).sum(-1, keepdim=True)).to(w.dtype)

    slot(name, SOME, "C11*", change)


twice("newest_twice", -1)
twice("tokens_of_steps_twice", PROMPT)
twice("last_of_prompt_twice", PROMPT - 1, PROMPT)


def appended(name, call, *calls):
    """The last layer appends the tokens of these calls, from 1 on, twice to its cache. The recording has the first
    columns of its probabilities, and the first rows of its cache, as many as are due."""
    slots = []  # the token in each

    @attends(name, SOME, "", call)
    def mask(m, a):
        i, j = torch.arange(max(slots) + 1 - a.query.shape[2], max(slots) + 1)[:, None], torch.tensor(slots)
        a.mask = masked(a, j <= i)

    attention = FAULTS.pop().make

    @fault(name, SOME, "*attn_probs *attn_context *_cache", "C11", call)
    def _(m):
        original, n = cache_utils.Cache.update, [0]

        def update(self, key, value, layer, *a, **more):
            if layer != m.last:
                return original(self, key, value, layer, *a, **more)
            n[0], slots[:] = (n[0] + 1, slots) if self.layers[layer].is_initialized else (0, [])
            tokens = [max(slots, default=-1) + 1 + i for i in range(key.shape[2])]
            for _ in range(n[0] in calls):
                slots.extend(tokens)
                original(self, key, value, layer, *a, **more)
            slots.extend(tokens)
            return original(self, key, value, layer, *a, **more)

        yield cache_utils.Cache, "update", update
        yield from attention(m)

    SURE.add(name)


appended("steps_appended_twice", "steps", *range(1, 9))
appended("first_step_appended_twice", "steps", 1)
appended("chunk_appended_twice", "chunks steps", 1)


# ---- positions of some tokens --------------------------------------------------------------------


def moved(name, families, ids, change, call="whole", sure=True):
    """change(positions) -> positions, as float32."""
    angled(name, families, ids, lambda m, inv, pos: (inv, change(pos)), call)
    if sure:
        SURE.add(name)


def within(pos, first, last):
    return ((pos >= first) & (pos <= last)).float()


moved("rope_steps_stretched", SOME, "R5*", lambda pos: pos / 2 if pos.shape[1] == 1 else pos, "steps")
moved("rope_steps_stretched_more", SOME, "R5*", lambda pos: pos * 1.25 if pos.shape[1] == 1 else pos, "steps")
moved("rope_step_stretched", SOME, "R5*", lambda pos: torch.where(pos == 66, pos / 4, pos) if pos.shape[1] == 1
      else pos, "steps")
moved("rope_steps_stuck", SOME, "R3b.stuck", lambda pos: pos.clamp(max=PROMPT) if pos.shape[1] == 1 else pos, "steps")
moved("rope_steps_by_two", SOME, "R3b.double", lambda pos: 2 * pos - PROMPT if pos.shape[1] == 1 else pos, "steps")
moved("rope_token_off", SOME, "", lambda pos: pos + 3 * within(pos, 20, 20))
moved("rope_token_stretched", SOME, "", lambda pos: pos * (1 - 0.5 * within(pos, 21, 21)))
moved("rope_run_off", SOME, "", lambda pos: pos - 2 * within(pos, 30, 45))
moved("rope_tail_off", SOME, "", lambda pos: pos + 5 * within(pos, 40, 99))
moved("rope_run_stretched", SOME, "", lambda pos: pos * (1 - 0.75 * within(pos, 31, 50)))
moved("rope_tail_stretched", SOME, "", lambda pos: torch.where(pos >= 48, pos / 4, pos))
moved("rope_run_at_one_position", SOME, "", lambda pos: torch.where(within(pos, 30, 45) > 0, 30.0 + 0 * pos, pos))
moved("rope_tail_compressed", SOME, "", lambda pos: torch.where(pos >= 48, 48 + (pos - 48) / 4, pos))
moved("rope_token_off_in_calls", SOME, "", lambda pos: pos - 3 * (pos[:, :1] > 0).float(), "uneven")


@rotation("rope_keys_off_in_a_run", SOME, "", origin="layer*.k_rope")
def _(m, original, q, k, cos, sin):
    late = [torch.cat((t[:, :20], t[:, 19:39], t[:, 40:]), 1) for t in (cos, sin)]
    return original(q, k, cos, sin)[0], original(q, k, *late)[1]


SURE.add("rope_keys_off_in_a_run")


# ---- prompts packed into one row -----------------------------------------------------------------


@attends("packed_seen", "gpt2 " + LLAMAS, "A14*", "packed", "all", "*attn_probs *attn_context")
def _(m, a):
    i, j = torch.arange(a.query.shape[2])[:, None], torch.arange(a.key.shape[2])
    window = (getattr(m.model.config, "sliding_window", None) if m.family == "mistral" else None) or 1000
    a.mask = masked(a, (j <= i) & (j > i - window))


@attends("packed_seen_by_last", "qwen2 qwen3", "A14*", "packed", "last", "{p}attn_probs {p}attn_context")
def _(m, a):
    i, j = torch.arange(a.query.shape[2])[:, None], torch.arange(a.key.shape[2])
    a.mask = masked(a, j <= i)


SURE.update(("packed_seen", "packed_seen_by_last"))
PLAIN.add("packed_seen_by_last")
