"""wrapped.py: records the tensors that no module of transformers takes or returns, by wrapping functions of the model.

During a recording, these functions of the module that defines the model are replaced by wrappers. A wrapper calls the
original function with the same arguments, and records arguments and results:

    apply_rotary_pos_emb                        q_rope, k_rope
    the attention that the model chose          attn_context of Qwen3.5, attn_probs, keys and values as they were read
    causal_conv1d_fn, causal_conv1d_update      gdn_conv
    ..._gated_delta_rule, l2norm                gdn_q_conv, gdn_k_conv, gdn_v, gdn_q, gdn_k, gdn_beta, gdn_g, gdn_state

Until transformers 5.14 a Gated DeltaNet holds its functions as attributes, which are wrapped in it.

Call.put takes a function that returns the tensor, and calls it only if the tensor is to be recorded.

Scores are recomputed from the arguments of the attention; so are probabilities if the attention does not return them.
"""

import contextlib
import inspect
import sys
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

import torch

from .call import Call
from .modules import mixer_of
from .numbers import RecordingError

RULES = ("torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule")
CONVOLUTIONS = ("causal_conv1d_fn", "causal_conv1d_update")
OWN_RULES = ("chunk_gated_delta_rule", "recurrent_gated_delta_rule")  # attributes of a mixer


def given_to(module: Any, args: Any, kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments of a call of a module, by name."""
    bound = inspect.signature(module.forward).bind_partial(*args, **kwargs)
    given = dict(bound.arguments)
    for p in bound.signature.parameters.values():
        if p.kind is inspect.Parameter.VAR_KEYWORD:
            given.update(given.pop(p.name, {}))
    return given


def cache_in(held: Any) -> Optional[Any]:
    """The cache among arguments or results, or None. It is known by its method: transformers has named it
    past_key_values, cache_params and (from 5.24) cache."""
    of = held.values() if isinstance(held, Mapping) else held if isinstance(held, (tuple, list)) else ()
    return next((x for x in of if hasattr(x, "get_seq_length")), None)


def replace(undo: contextlib.ExitStack, where: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace where.name by make(where.name) until undo ends; do nothing if it does not exist, or is None."""
    if getattr(where, name, None) is None:
        return
    own, before = name in vars(where), getattr(where, name)
    setattr(where, name, make(before))
    undo.callback(lambda: setattr(where, name, before) if own else delattr(where, name))


def source_of(mixer: Any) -> Any:
    """The Python module with the functions that a mixer calls: that of the class that defines
    forward, not of a class that inherits it."""
    return sys.modules[next(c for c in type(mixer).__mro__ if "forward" in vars(c)).__module__]


@contextlib.contextmanager
def functions(s: Call) -> Iterator[None]:
    """Wrap the functions of the model while the block runs."""
    seen = set()
    with contextlib.ExitStack() as undo:
        for layer in s.parts.layers:
            mixer, delta = mixer_of(layer)
            if hasattr(mixer, "_upcast_and_reordered_attn"):  # GPT-2's other attention, used if the config asks for it
                replace(undo, mixer, "_upcast_and_reordered_attn",
                        lambda f: _attention(s, lambda _, *a, **k: f(*a, **k), mixer))
            for name in CONVOLUTIONS if delta else ():
                replace(undo, mixer, name, lambda f: _convolution(s, f))
            for name in OWN_RULES if delta else ():
                replace(undo, mixer, name, lambda f: _delta_rule(s, f))
            source = source_of(mixer)
            if (source, delta) in seen:
                continue
            seen.add((source, delta))
            if delta:
                for name in CONVOLUTIONS:
                    replace(undo, source, name, lambda f: _convolution(s, f))
                for name in RULES:
                    replace(undo, source, name, lambda f: _delta_rule(s, f))
                replace(undo, source, "l2norm", lambda f: _l2norm(s, f))
            else:
                replace(undo, source, "apply_rotary_pos_emb", lambda f: _rotation(s, f))
                replace(undo, getattr(source, "ALL_ATTENTION_FUNCTIONS", None), "get_interface",
                        lambda f: lambda *a, **k: _attention(s, f(*a, **k)))
        yield


def watch_cache(undo: contextlib.ExitStack, cache: Any, moved: Callable[[], None]) -> None:
    """Call `moved` when the rows of a cache are reordered, as beam search does between its calls."""

    def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
        def reorder(rows: Any, *args: Any, **kwargs: Any) -> Any:
            if rows.tolist() != list(range(rows.numel())):
                moved()
            return f(rows, *args, **kwargs)

        return reorder

    for name in ("reorder_cache", "batch_select_indices"):
        replace(undo, cache, name, wrap)


def _rotation(s: Call, f: Callable[..., Any]) -> Callable[..., Any]:
    def apply_rotary_pos_emb(*args: Any, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        if s.layer is not None:
            for name, t in zip(("q_rope", "k_rope"), out):
                s.put(f"layer{s.layer}.{name}", lambda: t.transpose(1, 2), "patched")
        return out

    return apply_rotary_pos_emb


# ---- attention -----------------------------------------------------------------------------------


def _attention(s: Call, f: Callable[..., Any], owner: Optional[Any] = None) -> Callable[..., Any]:
    """Wrap an attention function. owner: its module, if the function does not get it as an argument."""

    def attention(*args: Any, **kwargs: Any) -> Any:
        args = args if owner is None else (owner, *args)
        out = f(*args, **kwargs)
        n = s.layer
        if n is not None and mixer_of(s.parts.layers[n])[0] is args[0]:
            given = dict(zip(("module", "query", "key", "value", "attention_mask"), args), **kwargs)
            with torch.no_grad():
                _attended(s, f"layer{n}.", given, out)
        return out

    return attention


def _attended(s: Call, p: str, given: Dict[str, Any], out: Any) -> None:
    """Record one attention. given: arguments of transformers' attention functions; out: (context (B,T,H,K),
    probabilities or None)."""
    query, key, value = given["query"], given["key"], given["value"]  # (B,H,T,K), (B,G,S,K): the cached keys
    T, S = query.shape[2], s.past + query.shape[2]
    held = key.shape[2]
    # a static cache has unused slots after the last token
    new = slice(s.past, S) if held >= S else slice(held - T, held)
    for name, t in (("q_rope", query), ("k_rope", key[:, :, new])):
        if p + name in s.waiting:  # apply_rotary_pos_emb was not called
            s.put(p + name, lambda: t.transpose(1, 2), "patched")
    # in other families it is the input of the output projection, which a hook records
    if s.parts.family.startswith("qwen3_5"):
        s.put(p + "attn_context", lambda: out[0], "patched")
    if not any(p + name in s.waiting for name in ("k_cache", "v_cache", "attn_scores", "attn_probs")):
        return
    # flex attention returns log-sums
    probabilities = out[1] if len(out) > 1 and isinstance(out[1], torch.Tensor) and out[1].ndim == 4 else None
    how = "patched"
    if given.get("sliding_window"):  # such a cache drops old keys: keep each key from the call that made it
        before = s.history.setdefault(p, (key[:, :, :0], value[:, :, :0]))
        s.history[p] = tuple(torch.cat([b, t[:, :, new]], 2) for b, t in zip(before, (key, value)))
    if held < S and p in s.history:
        (keys, values), how = s.history[p], "recomputed"
    else:
        keys, values = key[:, :, :S], value[:, :, :S]
    s.put(p + "k_cache", lambda: keys.transpose(1, 2), how)
    s.put(p + "v_cache", lambda: values.transpose(1, 2), how)
    s.put(p + "attn_scores", lambda: _scores(given, keys), "recomputed")
    how = "recomputed" if probabilities is None else "patched"
    s.put(p + "attn_probs", lambda: _every_key(_probabilities(s, given) if probabilities is None else probabilities, S),
          how)


def _scores(given: Dict[str, Any], keys: Any) -> Any:
    """Scores (B,H,T,S) before the mask, computed in the order of transformers' eager attention."""
    query, module = given["query"], given["module"]
    scaling = given.get("scaling")
    scaling = scaling if scaling is not None else getattr(module, "scaling", query.shape[-1] ** -0.5)
    scores = torch.matmul(query, keys.repeat_interleave(query.shape[1] // keys.shape[1], 1).transpose(2, 3)) * scaling
    cap = given.get("softcap")
    return scores if cap is None else (scores / cap).tanh() * cap


def _probabilities(s: Call, given: Dict[str, Any]) -> Any:
    """The masked softmax, for attentions that do not return it (sdpa, flash), over the keys that they get."""
    scores, mask = _scores(given, given["key"]), given.get("attention_mask")
    T, held = scores.shape[2:]
    if hasattr(mask, "mask_mod"):  # a mask of flex attention
        from torch.nn.attention.flex_attention import create_mask

        mask = create_mask(mask.mask_mod, *scores.shape, device=str(scores.device))
    if mask is None:
        j = torch.arange(held, device=scores.device)
        i = (j[held - T :] if held <= s.past + T else s.past + j[:T])[:, None]
        window = given.get("sliding_window")
        mask = (j <= i) & (j > i - window) if window else j <= i
    mask = mask[..., :held]
    least = torch.finfo(scores.dtype).min
    scores = scores.masked_fill(~mask, least) if mask.dtype == torch.bool else scores + mask.clamp(min=least)
    wide = torch.float64 if scores.dtype == torch.float64 else torch.float32
    return torch.softmax(scores, dim=-1, dtype=wide).to(scores.dtype)


def _every_key(probabilities: Any, S: int) -> Any:
    """Probabilities of all S keys: 0 for keys that a cache with a window dropped; unused slots of a static cache are
    cut off."""
    missing = S - probabilities.shape[-1]
    return torch.nn.functional.pad(probabilities, (missing, 0)) if missing > 0 else probabilities[..., :S]


# ---- Gated DeltaNet ------------------------------------------------------------------------------


def _convolution(s: Call, f: Callable[..., Any]) -> Callable[..., Any]:
    def convolution(*args: Any, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        if s.layer is not None:  # after cached rows, the result begins with those rows again
            s.put(f"layer{s.layer}.gdn_conv", lambda: out[:, :, -s.tokens :].transpose(1, 2), "patched")
        return out

    return convolution


def convolved(s: Call, taken: Any, out: Any) -> None:
    """Record gdn_conv where the module conv1d runs, which pads on both sides, and not a function."""
    if s.layer is not None:
        end = taken.shape[-1]
        s.put(f"layer{s.layer}.gdn_conv",
              lambda: torch.nn.functional.silu(out[:, :, end - s.tokens : end]).transpose(1, 2), "recomputed")


def _delta_rule(s: Call, f: Callable[..., Any]) -> Callable[..., Any]:
    def rule(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        n = s.layer
        if n is None:
            return f(query, key, value, *args, **kwargs)
        p, heads = f"layer{n}.", mixer_of(s.parts.layers[n])[0].num_k_heads
        asked = kwargs.get("output_final_state", False)
        s.lengths = []
        core, state = f(query, key, value, *args, **{**kwargs, "output_final_state": True})
        for i, (name, t) in enumerate((("gdn_q", query), ("gdn_k", key))):
            s.put(p + name + "_conv", lambda: _once(t, heads), "patched")
            if i < len(s.lengths):
                # until transformers 5.16 heads are the third axis here, as in t; then the second
                taken, made = s.lengths[i]
                s.put(p + name, lambda: _once(made if taken is t else made.transpose(1, 2), heads), "patched")
            else:  # the kernel normalises inside
                s.put(p + name, lambda: _length_one(_once(t, heads)), "recomputed")
        s.lengths = None
        s.put(p + "gdn_v", lambda: value, "patched")
        s.put(p + "gdn_beta", lambda: kwargs["beta"], "patched")
        s.put(p + "gdn_g", lambda: kwargs["g"], "patched")
        s.put(p + "gdn_state", *_own_state(s, f, (query, key, value, *args), kwargs, state))
        return core, (state if asked else None)

    return rule


def _own_state(s: Call, f: Callable[..., Any], args: Any, kwargs: Dict[str, Any],
               state: Any) -> Tuple[Callable[[], Any], str]:
    """(function that returns the state after the last token of each row, how it was captured). Padding at the end of a
    row changes the state that the call returns; then the rule runs again with beta 0 (writes nothing) and g 0 (forgets
    nothing) at the padding."""
    if s.trailing is None:
        return lambda: state, "patched"
    shown = (~s.trailing).to(kwargs["g"].device)[..., None]

    def again() -> Any:
        return f(*args,
                 **{**kwargs, "g": kwargs["g"] * shown, "beta": kwargs["beta"] * shown, "output_final_state": True})[1]

    return again, "recomputed"


def _l2norm(s: Call, f: Callable[..., Any]) -> Callable[..., Any]:
    def l2norm(*args: Any, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        if s.lengths is not None:
            s.lengths.append((args[0], out))
        return out

    return l2norm


def _once(t: Any, heads: int) -> Any:
    """Every key head (B,T,H,K) once: until transformers 5.22 a call gets it once for each of its value heads."""
    return t[:, :, :: t.shape[2] // heads]


def _length_one(t: Any) -> Any:
    x = t if t.dtype == torch.float64 else t.float()
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def conv_state(s: Call, n: int, net: Any, cache: Optional[Any]) -> None:
    """Record gdn_conv_state, the last J - 1 rows of gdn_qkv: from the cache of the call, or from the rows of
    gdn_qkv."""
    name, rows = f"layer{n}.gdn_conv_state", net.conv_kernel_size - 1
    if s.trailing is not None and s.past and name in s.waiting:
        raise RecordingError(f"{s.path}: {name}: a later call with padding after its rows; "
                             f"record without *.gdn_conv_state")
    # the call keeps rows of the padding; the row's own last rows are before them
    if s.trailing is not None and s.qkv is not None:
        last = s.tokens - s.trailing.sum(-1)
        at = last[:, None] + torch.arange(rows, device=last.device)  # index into the rows that are padded in front
        padded = torch.nn.functional.pad(s.qkv, (0, 0, rows, 0))
        s.put(name, lambda: padded[torch.arange(len(last), device=last.device)[:, None], at], "recomputed")
    elif cache is not None:
        s.put(name, lambda: _conv_state_in(cache, n)[:, :, -rows:].transpose(1, 2), "hook")
    elif s.qkv is not None:
        s.put(name, lambda: torch.nn.functional.pad(s.qkv, (0, 0, max(rows - s.tokens, 0), 0))[:, -rows:], "recomputed")


def _conv_state_in(cache: Any, n: int) -> Any:
    """What a cache keeps for the convolution of layer n: the cache has a list (transformers 5.2), or the layer has one
    (5.5) or several (5.14)."""
    held = cache.layers[n].conv_states if hasattr(cache, "layers") else cache.conv_states[n]
    return held if isinstance(held, torch.Tensor) else held[0]
