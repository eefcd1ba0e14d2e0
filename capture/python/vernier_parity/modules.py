"""modules.py: where the modules of HuggingFace transformers hold each checkpoint (vernier help models.md, chapter 2).

wrapped.py records what no module takes or returns: rotation, attention, delta rule.
"""

from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple

from .numbers import RecordingError
from .points import FAMILIES

Shape = Callable[[Any], Any]


class Hook(NamedTuple):
    """A checkpoint that is the input or output of a module. `shape` gives it the shape of the checkpoint."""

    name: str
    owner: Any
    attribute: str  # attribute of the owner that is the module; "": the owner itself
    into: bool
    shape: Shape
    layer: int = -1  # -1: outside layers

    @property
    def module(self) -> Any:
        """The module, or None if this model has no module of that name (but a fused one, for example)."""
        found = getattr(self.owner, self.attribute, None) if self.attribute else self.owner
        return found if hasattr(found, "register_forward_hook") else None


class Parts(NamedTuple):
    """The parts of a model."""

    model: Any  # with the config, the weights and the head
    family: str  # model_type of the text model
    body: Any  # embeddings, layers, last norm
    layers: List[Any]
    head: Optional[Any]  # the module that makes the logits
    embedding: Any
    positions: Any  # the module that gets the positions


def parts_of(model: Any) -> Parts:
    """The parts of a HuggingFace causal LM, also of one inside a larger model."""
    for body in model.modules() if hasattr(model, "modules") else ():
        family = getattr(getattr(body, "config", None), "model_type", None)
        if family not in FAMILIES:
            continue
        has = dict(body.named_children())  # its own modules, not those that it forwards from a module inside
        if "wte" in has and "h" in has:
            owner = _owner(model, body)
            return Parts(owner, family, body, list(body.h), owner.get_output_embeddings(), body.wte, body.wpe)
        if "embed_tokens" in has and "layers" in has and "rotary_emb" in has:
            owner = _owner(model, body)
            layers = list(body.layers)[: body.config.num_hidden_layers]
            return Parts(owner, family, body, layers, owner.get_output_embeddings(), body.embed_tokens, body.rotary_emb)
    kind = getattr(getattr(model, "config", None), "model_type", type(model).__name__)
    raise _unknown(kind)


def _unknown(kind: str) -> RecordingError:
    return RecordingError(f"a model of type {kind}; record() knows {', '.join(FAMILIES)} (any other engine: "
                          f"vernier_parity.Recorder)")


def _owner(model: Any, body: Any) -> Any:
    """The outermost module of transformers that holds the body. A user's own module around it has neither config nor
    head; PEFT's module returns those of the model inside."""
    for m in model.modules():
        if hasattr(type(m), "get_output_embeddings") and hasattr(getattr(m, "config", None), "get_text_config") and \
                any(x is body for x in m.modules()):
            return m
    raise _unknown(type(model).__name__)


def same(t: Any) -> Any:
    """t, unchanged."""
    return t


def heads(width: int) -> Shape:
    """Split the last axis: (B, T, heads width) becomes (B, T, heads, width)."""
    return lambda t: t.reshape(*t.shape[:2], -1, width)


def mixer_of(layer: Any) -> Tuple[Any, bool]:
    """(the module of the layer that mixes tokens, True if that is a Gated DeltaNet)."""
    net = getattr(layer, "linear_attn", None)
    return (net, True) if net is not None else (layer.attn if hasattr(layer, "attn") else layer.self_attn, False)


def hooks(parts: Parts, call: Callable[[], Tuple[int, int]]) -> Iterator[Hook]:
    """Every checkpoint that a module takes or returns. call: (batch, tokens) of the call in progress."""
    if parts.family == "gpt2":
        yield Hook("token_embed", parts.body, "wte", False, same)
        yield Hook("pos_embed", parts.body, "wpe", False, lambda t: t.expand(call()[0], *t.shape[1:]))
        yield Hook("embed", parts.body, "drop", False, same)
    else:
        yield Hook("embed", parts.body, "embed_tokens", False, same)
    for n, layer in enumerate(parts.layers):
        found = _gpt2(layer) if parts.family == "gpt2" else _decoder(layer, parts.family.startswith("qwen3_5"), call)
        yield from (h._replace(name=f"layer{n}.{h.name}", layer=n) for h in found)
        yield Hook(f"layer{n}.output", layer, "", False, same, n)
    yield Hook("final_norm", parts.body, "ln_f" if parts.family == "gpt2" else "norm", False, same)
    if parts.head is not None:
        yield Hook("logits", parts.head, "", False, same)


def _gpt2(layer: Any) -> Iterator[Hook]:
    attn, mlp = layer.attn, layer.mlp

    def third(i: int) -> Shape:
        return lambda t: heads(attn.head_dim)(t.split(attn.split_size, dim=2)[i])

    yield Hook("attn_norm", layer, "ln_1", False, same)
    yield Hook("c_attn", attn, "c_attn", False, same)
    for i, name in enumerate("qkv"):
        yield Hook(name + "_proj", attn, "c_attn", False, third(i))
    yield Hook("attn_context", attn, "c_proj", True, heads(attn.head_dim))
    yield Hook("attn_out", attn, "c_proj", False, same)
    yield Hook("attn_residual", layer, "ln_2", True, same)
    yield Hook("mlp_norm", layer, "ln_2", False, same)
    yield Hook("up_proj", mlp, "c_fc", False, same)
    yield Hook("mlp_act", mlp, "act", False, same)
    yield Hook("down_proj", mlp, "c_proj", False, same)


def _decoder(layer: Any, gated: bool, call: Callable[[], Tuple[int, int]]) -> Iterator[Hook]:
    mixer, delta = mixer_of(layer)
    mlp = layer.mlp
    yield Hook("attn_norm", layer, "input_layernorm", False, same)
    yield from _delta_net(mixer, call) if delta else _attention(mixer, gated)
    yield Hook("attn_residual", layer, "post_attention_layernorm", True, same)
    yield Hook("mlp_norm", layer, "post_attention_layernorm", False, same)
    yield Hook("gate_proj", mlp, "gate_proj", False, same)
    yield Hook("up_proj", mlp, "up_proj", False, same)
    yield Hook("gate_act", mlp, "act_fn", False, same)
    yield Hook("mlp_act", mlp, "down_proj", True, same)
    yield Hook("down_proj", mlp, "down_proj", False, same)


def _attention(attn: Any, gated: bool) -> Iterator[Hook]:
    """The checkpoints of an attention. gated: that of Qwen3.5, with a gate beside the queries of each head."""
    K = attn.head_dim
    if gated:
        yield Hook("qg_proj", attn, "q_proj", False, heads(2 * K))
        yield Hook("q_proj", attn, "q_proj", False, lambda t: heads(2 * K)(t)[..., :K])
        yield Hook("attn_gate", attn, "q_proj", False, lambda t: heads(2 * K)(t)[..., K:])
    else:
        yield Hook("q_proj", attn, "q_proj", False, heads(K))
    yield Hook("k_proj", attn, "k_proj", False, heads(K))
    yield Hook("v_proj", attn, "v_proj", False, heads(K))
    if hasattr(attn, "q_norm"):
        yield Hook("q_norm", attn, "q_norm", False, same)
        yield Hook("k_norm", attn, "k_norm", False, same)
    yield Hook("attn_gated" if gated else "attn_context", attn, "o_proj", True, heads(K))
    yield Hook("attn_out", attn, "o_proj", False, same)


def _delta_net(net: Any, call: Callable[[], Tuple[int, int]]) -> Iterator[Hook]:
    values = heads(net.head_v_dim)
    rows = lambda t: t.reshape(*call(), -1, net.head_v_dim)  # one row per token and head
    yield Hook("gdn_qkv", net, "in_proj_qkv", False, same)
    yield Hook("gdn_z", net, "in_proj_z", False, values)
    yield Hook("gdn_b", net, "in_proj_b", False, same)
    yield Hook("gdn_a", net, "in_proj_a", False, same)
    yield Hook("gdn_core", net, "norm", True, rows)
    yield Hook("gdn_norm", net, "norm", False, rows)
    yield Hook("attn_out", net, "out_proj", False, same)
