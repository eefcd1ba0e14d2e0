"""any_faults.py: mistakes planted from outside in a model of any architecture: FAULTS[name] is (the module, what is
done to it), NAMES[name] how `compare --explain` may say it."""

import re
import types

import torch

NN = torch.nn
OUT = (r"(o_proj|out_proj|attention\.output\.dense|c_proj|to_out\.0|\.wo|Wo|attn\.proj|attention\.dense|"
       r"self_attention\.dense|SelfAttention\.o)")
VALUE = r"(v_proj|value|value_proj|to_v|\.v|qkv|query_key_value|Wqkv|in_proj)"
SCALES = ("scaling", "scale", "inv_norm_factor")


def childless(m):
    return not any(True for _ in m.children())


def pick(model, wanted, at=0.5):
    """(name, module) of one of the wanted modules: the first for at = 0, the last for 1."""
    found = [(n, m) for n, m in model.named_modules() if wanted(n, m)]
    return found[min(len(found) - 1, int(len(found) * at))] if found else (None, None)


def linear(pattern, at=0.5):
    return lambda model: pick(model, lambda n, m: isinstance(m, NN.Linear) and re.search(pattern + "$", n), at)


def norm(model):
    return pick(model, lambda n, m: childless(m) and "Norm" in type(m).__name__ and "Group" not in type(m).__name__
                and (hasattr(m, "eps") or hasattr(m, "variance_epsilon")))


def layer(model):
    return pick(model, lambda n, m: re.search(r"\.(\d+)$", n) and re.search("(Layer|Block)", type(m).__name__)
                and not childless(m))


def attention(model):
    inner = r"(^q|qkv|query|c_attn|to_q|proj)"
    return pick(model, lambda n, m: re.search("(Attention|Attn)", type(m).__name__)
                and any(re.search(inner, k) for k, _ in m.named_children()), 1)


def multiply(m, names, by):
    for k in names:
        if isinstance(getattr(m, k, None), float):
            setattr(m, k, getattr(m, k) * by)


def late(m, args, kwargs):
    """Positions from the tenth on are one too large."""
    move = lambda p: p + (torch.arange(p.shape[-1], device=p.device) > 8)
    if "position_ids" in kwargs:
        return args, {**kwargs, "position_ids": move(kwargs["position_ids"])}
    return (args[0], move(args[1]), *args[2:]), kwargs


def ahead(m, args, kwargs):
    """Each query has the mask of the next."""
    q = kwargs.get("attention_mask")
    if isinstance(q, torch.Tensor) and q.ndim == 4:
        return args, {**kwargs, "attention_mask": torch.cat([q[..., 1:, :], q[..., -1:, :]], -2)}
    return None


def twice(m, args, kwargs, out):
    h = args[0] if args else kwargs["hidden_states"]
    return out + h if isinstance(out, torch.Tensor) else (out[0] + h, *out[1:])


def gelu(m):
    """Another variant of GELU; GELU in place of another activation."""
    erf = "gelu" in type(m).__name__.lower() and "tanh" not in repr(m).lower()
    m.forward = types.MethodType(
        lambda self, h: NN.functional.gelu(h, approximate="tanh" if erf else "none"), m)


def first_head_zero(m, args):
    return (torch.cat([args[0][..., :8] * 0, args[0][..., 8:]], -1),)


def with_donor(model):
    """A product of values that knows the same one of another layer."""
    found = [(n, m) for n, m in model.named_modules() if isinstance(m, NN.Linear) and re.search(VALUE + "$", n)]
    other = [m for _, m in found[:-1] if m.weight.shape == found[-1][1].weight.shape]
    if not other:
        return None, None
    found[-1][1].donor = other[:1]
    return found[-1]


def swap_experts(m):
    for p in m.parameters(recurse=False):
        p.data[[0, 1]] = p.data[[1, 0]].clone()


FAULTS = {
    "scaled": (linear(""), lambda m: m.register_forward_hook(lambda m, a, o: o * 1.02)),
    "bias": (lambda model: pick(model, lambda n, m: childless(m)
                                and isinstance(getattr(m, "bias", None), torch.Tensor)),
             lambda m: m.bias.data.zero_()),
    "eps": (norm, lambda m: multiply(m, ("eps", "variance_epsilon"), 1e4)),
    "position": (lambda model: pick(model, lambda n, m: "otary" in type(m).__name__ and childless(m), 1),
                 lambda m: m.register_forward_pre_hook(late, with_kwargs=True)),
    "table row": (lambda model: pick(model, lambda n, m: isinstance(m, NN.Embedding) and re.search("(pos|wpe)", n)
                                     and "relative" not in n, 1),
                  lambda m: m.weight.data.copy_(m.weight.data.roll(-1, 0))),
    "experts": (lambda model: pick(model, lambda n, m: "xperts" in type(m).__name__ and any(
        p.ndim == 3 for p in m.parameters(recurse=False)), 1), swap_experts),
    "residual": (layer, lambda m: m.register_forward_hook(twice, with_kwargs=True)),
    "head": (linear(OUT), lambda m: m.register_forward_pre_hook(first_head_zero)),
    "activation": (lambda model: pick(model, lambda n, m: childless(m) and re.search(
        "(GELU|SiLU|Swish|Activation)", type(m).__name__)), gelu),
    "scale": (lambda model: pick(model, lambda n, m: any(isinstance(getattr(m, k, None), float) for k in SCALES)),
              lambda m: multiply(m, SCALES, 1.1)),
    "softcap": (lambda model: pick(model, lambda n, m: getattr(m, "attn_logit_softcapping", None), 1),
                lambda m: setattr(m, "attn_logit_softcapping", None)),
    "mask": (attention, lambda m: m.register_forward_pre_hook(ahead, with_kwargs=True)),
    "value rows": (linear(VALUE), lambda m: m.weight.data[:16].copy_(m.weight.data[:16].flip(0).clone())),
    "tap": (lambda model: pick(model, lambda n, m: isinstance(m, (NN.Conv1d, NN.Conv2d))),
            lambda m: m.weight.data[:, :, -1].zero_()),
    "transposed": (lambda model: pick(model, lambda n, m: isinstance(m, NN.Linear) and re.search(OUT + "$", n)
                                      and m.weight.shape[0] == m.weight.shape[1]),
                   lambda m: m.weight.data.copy_(m.weight.data.t().clone())),
    "other layer": (with_donor, lambda m: m.weight.data.copy_(m.donor[0].weight.data)),
    "rows late": (linear(""), lambda m: m.register_forward_hook(
        lambda m, a, o: torch.cat([o[..., :1, :], o[..., :-1, :]], -2) if o.ndim > 1 else o)),
}

# Any name that does not fit its expression is wrong.
NAMES = {
    "scaled": r"every element is multiplied by 1\.0[12]",
    "bias": r"bias\S* missing|left out: add",  # the second: a bias that an operation of its own adds
    "eps": r"eps is ",
    "position": r"positions or ids are off by \+1, from number 9 on",
    "table row": r"positions or ids are off by \+1|rows \d+-\d+ hold rows",
    "experts": r"experts 0 and 1 are exchanged",
    "residual": r"added twice: |it reads \S*add",
    "head": r"inputs 0-7 of \d+ are 0|channels? 0",
    "activation": r"the activation is (gelu|gelu_tanh|silu)\b",
    "scale": r"(argument \w+|alpha) of \w+ is |sca\w+ is |every element is multiplied by (1\.[01]|0\.9)",
    "softcap": r"left out: |capping",
    "mask": r"the mask: each query has that of the query after it|it reads cat",
    "value rows": r"columns \d+-\d+ hold columns|rows of the matrix in another order: ",
    "transposed": r"the matrix is transposed",
    "other layer": r"weights of ",
    "rows late": r"hold rows? |1 row late|on axis \d",
    "tap": r"tap \d+ of \d+.* of the kernel is 0|every element is 0",  # the second: a kernel of one tap
}
