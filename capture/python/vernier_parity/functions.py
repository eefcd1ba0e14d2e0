"""functions.py: records the tensors that no module of transformers takes or returns: arguments and results of
functions of the model's source file, which are replaced by wrappers during a recording.

    apply_rotary_pos_emb                        q_rope, k_rope
    the attention that the model chose          attn_context of Qwen3.5, rotated queries and keys of DeepSeek,
                                                attn_probs, keys and values as they were read
    causal_conv1d_fn, causal_conv1d_update      gdn_conv
    ..._gated_delta_rule, l2norm                gdn_q_conv, gdn_k_conv, gdn_v, gdn_q, gdn_k, gdn_beta, gdn_g, gdn_state

Until transformers 5.14 a Gated DeltaNet holds its functions as attributes, which are wrapped in it. Scores are computed
from the arguments of the attention; so are probabilities if the attention does not return them.
"""

from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import torch

from .numbers import RecordingError
from .places import ROTATION, Parts, mixer_of, sources_of
from .watch import Session, cache_in, given_to

RULES = ("torch_chunk_gated_delta_rule", "torch_recurrent_gated_delta_rule")
CONVOLUTIONS = ("causal_conv1d_fn", "causal_conv1d_update")
OWN = CONVOLUTIONS + ("chunk_gated_delta_rule", "recurrent_gated_delta_rule")  # attributes of a mixer


class Call(Session):
    """The forward pass that runs, of a model of a known family; between passes, the next one."""

    parts: Parts
    numbers: Dict[int, List[int]]  # by module: the layers that it is, in order

    def forget(self) -> None:
        """Another pass begins."""
        self.waiting: Set[str] = set()  # checkpoints that this pass has not recorded yet
        self.past = self.tokens = 0  # tokens before this pass, and in it
        self.qkv: Optional[Any] = None
        self.lengths: Optional[List[Tuple[Any, Any]]] = None  # what l2norm took and returned
        self.trailing: Optional[Any] = None  # (B, T), True at padding after the last token of each row

    @property
    def layer(self) -> int:
        """The layer that runs; -1 outside layers. A module may be several."""
        for _, turn, m in reversed(self.watch.stack):
            if turn < len(self.numbers.get(id(m), ())):
                return self.numbers[id(m)][turn]
        return -1

    def put(self, name: str, tensor: Callable[[], Any], how: str) -> None:
        """Record a tensor, batch first, if this pass is to record it and has not yet. Only then `tensor` is called. It
        is copied at once."""
        raise NotImplementedError

    def put_here(self, point: str, tensor: Callable[[], Any], how: str = "patched") -> None:
        """The same of the layer that runs."""
        if self.layer >= 0:
            self.put(f"layer{self.layer}.{point}", tensor, how)

    def watch_functions(self) -> None:
        # keys and values of layers with a window, if they are to be recorded
        self.history: Dict[str, Tuple[Any, Any]] = {}
        wrap = lambda make: lambda f: lambda *a, **k: make(f, *a, **k)
        rule, convolution = wrap(self._delta_rule), wrap(self._convolution)
        delta_net = {**dict.fromkeys(CONVOLUTIONS, convolution), **dict.fromkeys(RULES, rule),
                     "l2norm": wrap(self._l2norm)}
        mixers = {id(m): (m, delta) for m, delta in map(mixer_of, self.parts.layers)}
        others = {id(layer.mlp): layer.mlp for layer in self.parts.layers if hasattr(layer, "mlp")}
        for m in (*(m for m, _ in mixers.values()), *others.values()):
            for part, begin in (("in_proj_qkv", self.watch_delta_net), ("kv_lora_rank", self.watch_latent),
                                ("shared_expert_gate", self.watch_shared)):
                if hasattr(m, part):
                    begin(m)
        for m, delta in mixers.values():
            # GPT-2's other attention, used if the config asks for it
            self.watch.function(m, "_upcast_and_reordered_attn", lambda f, m=m: lambda *a, **k: self._attention(
                lambda _, *a, **k: f(*a, **k), m, *a, **k))
            for name in OWN if delta else ():
                self.watch.function(m, name, convolution if name in CONVOLUTIONS else rule)
        kinds = {(sources_of(m), delta, hasattr(m, "kv_lora_rank")) for m, delta in mixers.values()}
        for source, delta, latent in kinds:
            for name, make in (delta_net if delta else {} if latent else {ROTATION: wrap(self._rotation)}).items():
                self.watch.function(source, name, make)
            if not delta:
                self.watch.function(getattr(source, "ALL_ATTENTION_FUNCTIONS", None), "get_interface",
                                    lambda f: lambda *a, **k: wrap(self._attention)(f(*a, **k)))

    # ---- a shared expert with a gate -------------------------------------------------------------

    def watch_shared(self, moe: Any) -> None:
        """Its weight, and what it is multiplied with, are no module's."""
        made: List[Any] = []

        def gated(m: Any, args: Any, kwargs: Any, out: Any) -> None:
            weight = torch.sigmoid(out)
            for name, t in (("weight", weight), ("gated", weight * made.pop())) if made else ():
                self.put_here(f"shared_expert_{name}", lambda: t.reshape(-1, self.tokens, t.shape[-1]), "recomputed")

        self.watch.module(moe.shared_expert, after=lambda m, a, k, out: made.append(out))
        self.watch.module(moe.shared_expert_gate, after=gated)

    # ---- latent attention ------------------------------------------------------------------------

    def watch_latent(self, attn: Any) -> None:
        """Watch the projections whose parts have names. The second may take the rows of earlier calls, too."""
        C, N = attn.kv_lora_rank, attn.qk_nope_head_dim
        made: List[Any] = []

        def latent(m: Any, args: Any, kwargs: Any) -> None:
            if not made:  # it reads another projection's
                return
            x, both = args[0] if args else next(iter(kwargs.values())), made.pop()
            last = not torch.equal(x, both[..., :C]) and torch.equal(x, both[..., -C:])  # the others are in front
            self.put_here("kv_latent", lambda: x, "hook")
            self.put_here("k_pe", lambda: both[..., None, :-C] if last else both[..., None, C:], "hook")

        def wide(m: Any, args: Any, kwargs: Any, out: Any) -> None:
            t = out.reshape(out.shape[0], -1, attn.num_heads, N + attn.v_head_dim)
            t = t[:, self._new(t.shape[1])]
            for name, part in (("kv_b_proj", t), ("k_nope", t[..., :N]), ("v_proj", t[..., N:])):
                self.put_here(name, lambda: part, "hook")

        self.watch.module(attn.kv_a_proj_with_mqa, after=lambda m, a, k, out: made.append(out))
        self.watch.module(attn.kv_a_layernorm, before=latent)
        self.watch.module(attn.kv_b_proj, after=wide)

    def _new(self, held: int) -> slice:
        """The rows of this call among those that a cache holds; a static one has unused slots after them."""
        S = self.past + self.tokens
        return slice(self.past, S) if held >= S else slice(held - self.tokens, held)

    # ---- attention -------------------------------------------------------------------------------

    def _rotation(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        for name, t in zip(("q_rope", "k_rope"), out):
            self.put_here(name, lambda: t.transpose(1, 2))
        return out

    def _attention(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        if self.layer >= 0 and mixer_of(self.parts.layers[self.layer])[0] is args[0]:
            given = dict(zip(("module", "query", "key", "value", "attention_mask"), args), **kwargs)
            with torch.no_grad():
                self._attended(f"layer{self.layer}.", given, out)
        return out

    def _attended(self, p: str, given: Dict[str, Any], out: Any) -> None:
        """Record one attention. given: arguments of transformers' attention functions; out: (context (B,T,H,K),
        probabilities or None)."""
        query, key, value = given["query"], given["key"], given["value"]  # (B,H,T,K), (B,G,S,K): the cached keys
        S = self.past + query.shape[2]
        held, new = key.shape[2], self._new(key.shape[2])
        if hasattr(given["module"], "kv_lora_rank"):  # beside the keys of every head
            rotated = given["module"].qk_rope_head_dim
            value = value[..., : given["module"].v_head_dim]  # some releases pad it for flash attention
            self.put(p + "k_pe_rope", lambda: key[:, :1, new, -rotated:].transpose(1, 2), "patched")
        for name, t in (("q_rope", query), ("k_rope", key[:, :, new])):  # where apply_rotary_pos_emb was not called
            self.put(p + name, lambda: t.transpose(1, 2), "patched")
        # in other families it is the input of the output projection, which a hook records
        if self.parts.family.startswith("qwen3_5"):
            self.put(p + "attn_context", lambda: out[0], "patched")
        if not any(p + name in self.waiting for name in ("k_cache", "v_cache", "attn_scores", "attn_probs")):
            return
        # flex attention returns log-sums
        probabilities = out[1] if len(out) > 1 and isinstance(out[1], torch.Tensor) and out[1].ndim == 4 else None
        how = "patched"
        if given.get("sliding_window"):  # such a cache drops old keys: keep each key from the call that made it
            before = self.history.setdefault(p, (key[:, :, :0], value[:, :, :0]))
            self.history[p] = tuple(torch.cat([b, t[:, :, new]], 2) for b, t in zip(before, (key, value)))
        if held < S and p in self.history:
            (keys, values), how = self.history[p], "recomputed"
        else:
            keys, values = key[:, :, :S], value[:, :, :S]
        self.put(p + "k_cache", lambda: keys.transpose(1, 2), how)
        self.put(p + "v_cache", lambda: values.transpose(1, 2), how)
        self.put(p + "attn_scores", lambda: scores_of(given, keys), "recomputed")
        how = "recomputed" if probabilities is None else "patched"
        self.put(p + "attn_probs", lambda: _every_key(probabilities_of(self.past, given) if probabilities is None
                                                      else probabilities, S), how)

    # ---- Gated DeltaNet --------------------------------------------------------------------------

    def watch_delta_net(self, net: Any) -> None:
        """Watch the modules that a Gated DeltaNet calls."""

        def keep(m: Any, args: Any, kwargs: Any, out: Any) -> None:
            self.qkv = out

        def convolved(m: Any, args: Any, kwargs: Any, out: Any) -> None:
            """The module conv1d runs, which pads on both sides, and not a function."""
            end = args[0].shape[-1]
            self.put_here("gdn_conv", lambda: torch.nn.functional.silu(
                out[:, :, end - self.tokens : end]).transpose(1, 2), "recomputed")

        self.watch.module(net.in_proj_qkv, after=keep)
        self.watch.module(net.conv1d, after=convolved)
        self.watch.module(net, after=lambda m, a, k, out: self.put_conv_state(m, a, k))

    def _convolution(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        # after cached rows, the result begins with those rows again
        self.put_here("gdn_conv", lambda: out[:, :, -self.tokens :].transpose(1, 2))
        return out

    def _delta_rule(self, f: Callable[..., Any], query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        if self.layer < 0:
            return f(query, key, value, *args, **kwargs)
        heads = mixer_of(self.parts.layers[self.layer])[0].num_k_heads
        asked = kwargs.get("output_final_state", False)
        self.lengths = []
        core, state = f(query, key, value, *args, **{**kwargs, "output_final_state": True})
        for i, (name, t) in enumerate((("gdn_q", query), ("gdn_k", key))):
            self.put_here(name + "_conv", lambda: _once(t, heads))
            if i < len(self.lengths):
                # until transformers 5.16 heads are the third axis here, as in t; then the second
                taken, made = self.lengths[i]
                self.put_here(name, lambda: _once(made if taken is t else made.transpose(1, 2), heads))
            else:  # the kernel normalises inside
                self.put_here(name, lambda: _length_one(_once(t, heads)), "recomputed")
        self.lengths = None
        self.put_here("gdn_v", lambda: value)
        self.put_here("gdn_beta", lambda: kwargs["beta"])
        self.put_here("gdn_g", lambda: kwargs["g"])
        if self.trailing is None:
            self.put_here("gdn_state", lambda: state)
        else:  # the padding changed it: with beta 0 the rule writes nothing there, with g 0 it forgets nothing
            shown = (~self.trailing).to(kwargs["g"].device)[..., None]
            own = {**kwargs, "g": kwargs["g"] * shown, "beta": kwargs["beta"] * shown, "output_final_state": True}
            self.put_here("gdn_state", lambda: f(query, key, value, *args, **own)[1], "recomputed")
        return core, (state if asked else None)

    def _l2norm(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        if self.lengths is not None:
            self.lengths.append((args[0], out))
        return out

    def put_conv_state(self, net: Any, args: Any, kwargs: Any) -> None:
        """Record gdn_conv_state, the last J - 1 rows of gdn_qkv: from the cache of the call, or from the rows of
        gdn_qkv."""
        name, rows = f"layer{self.layer}.gdn_conv_state", net.conv_kernel_size - 1
        cache = cache_in(given_to(net, args, kwargs))
        if self.trailing is not None and self.past and name in self.waiting:
            raise RecordingError(f"{self.path}: {name}: a later call with padding after its rows; "
                                 f"record without *.gdn_conv_state")
        pad = lambda n: torch.nn.functional.pad(self.qkv, (0, 0, n, 0))
        # the call keeps rows of the padding; the row's own last rows are before them
        if self.trailing is not None and self.qkv is not None:
            last = self.tokens - self.trailing.sum(-1)
            at = last[:, None] + torch.arange(rows, device=last.device)  # index into the rows that are padded in front
            self.put(name, lambda: pad(rows)[torch.arange(len(last), device=last.device)[:, None], at], "recomputed")
        elif cache is not None:
            self.put(name, lambda: _conv_state_in(cache, self.layer)[:, :, -rows:].transpose(1, 2), "hook")
        elif self.qkv is not None:
            self.put(name, lambda: pad(max(rows - self.tokens, 0))[:, -rows:], "recomputed")
        self.qkv = None


def scores_of(given: Dict[str, Any], keys: Any) -> Any:
    """Scores (B,H,T,S) before the mask, computed in the order of transformers' eager attention."""
    query, module = given["query"], given["module"]
    scaling = given.get("scaling")
    scaling = scaling if scaling is not None else getattr(module, "scaling", query.shape[-1] ** -0.5)
    scores = torch.matmul(query, keys.repeat_interleave(query.shape[1] // keys.shape[1], 1).transpose(2, 3)) * scaling
    cap = given.get("softcap")
    return scores if cap is None else (scores / cap).tanh() * cap


def probabilities_of(past: int, given: Dict[str, Any]) -> Any:
    """The masked softmax, for attentions that do not return it (sdpa, flash), over the keys that they get."""
    scores, mask = scores_of(given, given["key"]), given.get("attention_mask")
    T, held = scores.shape[2:]
    if hasattr(mask, "mask_mod"):  # a mask of flex attention
        from torch.nn.attention.flex_attention import create_mask

        mask = create_mask(mask.mask_mod, *scores.shape, device=str(scores.device))
    if mask is None:
        j = torch.arange(held, device=scores.device)
        i = (j[held - T :] if held <= past + T else past + j[:T])[:, None]
        window = given.get("sliding_window")
        mask = (j <= i) & (j > i - window) if window else j <= i
    mask = mask[..., :held]
    least = torch.finfo(scores.dtype).min
    scores = scores.masked_fill(~mask, least) if mask.dtype == torch.bool else scores + mask.clamp(min=least)
    wide, sinks = torch.float64 if scores.dtype == torch.float64 else torch.float32, given.get("s_aux")
    if sinks is not None:
        scores = torch.cat([scores, sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1).to(scores)], -1)
    return torch.softmax(scores, dim=-1, dtype=wide).to(scores.dtype)[..., :held]


def _every_key(probabilities: Any, S: int) -> Any:
    """Probabilities of all S keys: 0 for keys that a cache with a window dropped; unused slots of a static cache are
    cut off."""
    missing = S - probabilities.shape[-1]
    return torch.nn.functional.pad(probabilities, (missing, 0)) if missing > 0 else probabilities[..., :S]


def _once(t: Any, heads: int) -> Any:
    """Every key head (B,T,H,K) once: until transformers 5.22 a call gets it once for each of its value heads, side by
    side; an engine that repeats all heads in turn has its mistake there, not in the heads."""
    times, turns = t.shape[2] // heads, t[:, :, :heads]
    if times > 1 and torch.equal(t, turns.repeat(1, 1, times, 1)):
        return turns
    return t[:, :, ::times]


def _length_one(t: Any) -> Any:
    x = t if t.dtype == torch.float64 else t.float()
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


def _conv_state_in(cache: Any, n: Any) -> Any:
    """What a cache keeps for the convolution of layer n: the cache has a list (transformers 5.2), or the layer has one
    (5.5) or several (5.14)."""
    held = cache.layers[n].conv_states if hasattr(cache, "layers") else cache.conv_states[n]
    return held if isinstance(held, torch.Tensor) else held[0]
