"""outside_alike.py: mistakes made in transformers from outside, like those of outside_faults.py,
that give the numbers of another mistake.

Probabilities that do not depend on queries and keys are the same in every layer, and look recorded
twice. In 16 bits, two mistakes at one norm, or another theta without its scaling, are nearly what
others leave. After an explosion, a correct norm gives 0. Roundings differ only in ties, or in the
last step of a scale. Importing this module adds them to FAULTS.
"""
import torch
import torch.nn.functional as F

from outside_attention import attends
from outside_faults import ALL, LLAMAS, SURE, WHOLE, angled, changed, down, fault, normed, rms, theta

EVERYWHERE = "*attn_probs *attn_context *attn_scores"


def sees(a, seen):
    a.mask = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(a.query.dtype).min)[None, None].to(a.query.dtype)


def places(a):
    """Queries and keys, by their places in the call and in what is cached."""
    return torch.arange(a.query.shape[2])[:, None], torch.arange(a.key.shape[2])


@attends("alike_scale_zero", ALL, "A1*", "whole", "all", EVERYWHERE)
def _(m, a):
    a.scaling = 0.0


@attends("alike_first_key", "gpt2 llama mistral", "", "whole", "all", EVERYWHERE)
def _(m, a):
    i, j = places(a)
    sees(a, (j == 0).expand(len(i), -1))


@attends("alike_argmax", "llama qwen3", "", "whole", "all", EVERYWHERE)
def _(m, a):
    a.softmax = lambda s: F.one_hot(s.float().argmax(-1), s.shape[-1]).to(s.dtype)


@attends("alike_mask_of_calls", "mistral qwen3", "A3.chunk", "chunks steps", "all", EVERYWHERE)
def _(m, a):
    i, j = places(a)
    sees(a, j <= i)


@attends("alike_own_key", "mistral qwen2", "", "steps", "all", "step*")
def _(m, a):
    if a.query.shape[2] == 1:
        i, j = places(a)
        sees(a, (j == a.key.shape[2] - 1)[None])


@attends("alike_nothing_appended", "llama qwen2", "", "steps", "last", "step*")
def _(m, a):
    if a.query.shape[2] == 1:
        a.key, a.value, a.mask = a.key[:, :, :62], a.value[:, :, :62], None


def tf32_away(x):
    """Rounded to ten bits of mantissa, ties away from 0, as graphics processors do."""
    return ((x.float().view(torch.int32) + 0x1000) & -8192).view(torch.float32)


def int8_of_128(weight):
    scale = weight.float().abs().amax(1, True) / 128
    return torch.round(weight.float() / scale).clamp(-128, 127) * scale


@fault("alike_explosion", "llama qwen2", "layer0.down_proj", "")
def _(m):
    down = m.layers[0].mlp.down_proj
    yield down, "forward", lambda x: F.linear(x, down.weight) * 1e20


normed("alike_eps_plus_one", "llama mistral qwen2", "N1*+N6 N6+N1*", lambda m, n,
       x: rms(x, 0.05) * (1 + n.weight.float()))
normed("alike_eps_centred", "llama mistral qwen2", "N1*+N3* N3*+N1*", lambda m, n,
       x: F.layer_norm(x, x.shape[-1:], n.weight.float(), None, 0.03))


@fault("pair_of_all_norms", "llama qwen2", "*_norm", "N3.layer+N7.weight N7.weight+N3.layer", "steps")
def _(m):
    for norm in [n for l in m.layers for n in (l.input_layernorm, l.post_attention_layernorm)] + [m.final]:
        yield norm, "forward", lambda x: F.layer_norm(x.float(), x.shape[-1:]).to(x.dtype)


angled("pair_of_rotations", "llama qwen2 qwen3", "R3.plus+R8 R8+R3.plus", lambda m, inv, pos: (inv, -(pos + 1)),
       "steps")
SURE.update(("pair_of_all_norms", "pair_of_rotations"))
WHOLE.update(("pair_of_all_norms", "pair_of_rotations"))
angled("alike_theta", LLAMAS, "R2*", lambda m, inv,
       pos: theta(m.model.config.rope_parameters["rope_theta"] * 1.2)(m, inv, pos))

changed("alike_int8_128", "llama qwen2", "{p}down_proj", "W15*", down, int8_of_128)


@fault("alike_tf32_away", "gpt2 llama qwen3", "logits", "")
def _(m):
    head = m.model.lm_head
    yield head, "forward", lambda x: F.linear(tf32_away(x), tf32_away(head.weight)).to(x.dtype)


SURE |= {"alike_" + name for name in "scale_zero first_key argmax mask_of_calls own_key nothing_appended eps_plus_one "
         "eps_centred theta int8_128".split()}
