"""modules.py: where the modules of HuggingFace transformers hold each checkpoint (vernier help models.md, chapter 2).

wrapped.py records what no module takes or returns: rotation, attention, delta rule.
"""

from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple

from .numbers import RecordingError
from .families import FAMILIES, Row

Shape = Callable[[Any], Any]
HEAD = "lm_head"  # of the whole model, whatever its name there


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


def mixer_of(layer: Any) -> Tuple[Any, bool]:
    """(the module of the layer that mixes tokens, True if that is a Gated DeltaNet)."""
    net = getattr(layer, "linear_attn", None)
    return (net, True) if net is not None else (layer.attn if hasattr(layer, "attn") else layer.self_attn, False)


def hooks(parts: Parts, call: Callable[[], Tuple[int, int]]) -> Iterator[Hook]:
    """Every checkpoint that a module takes or returns. call: (batch, tokens) of the call in progress."""
    family = FAMILIES[parts.family]
    types = getattr(parts.body.config, "layer_types", None)
    for row in family.before:
        yield from _hook(row, row.point, parts.body, parts.layers[0], -1, call)
    for n, layer in enumerate(parts.layers):
        for row in family.rows_of(n, types):
            yield from _hook(row, f"layer{n}.{row.point}", layer, layer, n, call)
    for row in family.behind:
        if row.module != HEAD:
            yield from _hook(row, row.point, parts.body, parts.layers[0], -1, call)
        elif parts.head is not None:
            yield Hook(row.point, parts.head, "", False, _capped(parts, row), -1)


def _capped(parts: Parts, row: Row) -> Shape:
    """The logits of what the head returns. The model's own code puts a cap on them."""
    cap = getattr(parts.body.config, "final_logit_softcapping", None) if row.op == "scale" else None
    return (lambda t: t) if cap is None else lambda t: (t / cap).tanh() * cap


def _hook(row: Row, name: str, root: Any, layer: Any, n: int, call: Callable[[], Tuple[int, int]]) -> Iterator[Hook]:
    """The hook of a row, if a module below root has it."""
    if row.module is None:
        return
    *path, last = row.module.split(".")
    owner = root
    for step in path:
        owner = getattr(owner, step, None)
    yield Hook(name, owner, last, row.how != "out", _shape(row, layer, getattr(owner, last, None), call), n)


def _shape(row: Row, layer: Any, module: Any, call: Callable[[], Tuple[int, int]]) -> Shape:
    """What makes the checkpoint of what the module takes or returns."""
    mixer = mixer_of(layer)[0]
    heads = row.axes.split()[1:] in (["head", "dim"], ["kv_head", "dim"], ["lin_head", "dim"])
    width = 0 if not heads else mixer.head_v_dim if "lin_head" in row.axes else mixer.head_dim

    def shape(t: Any) -> Any:
        if row.how == "rows":
            return module.weight[t]
        if row.op == "scale" and not hasattr(module, "embed_scale"):  # older releases: the model's code does it
            return t * t.new_tensor(t.shape[-1] ** 0.5)
        if row.op == "positions":
            return t.expand(call()[0], *t.shape[1:])
        if row.part and not row.part[2]:
            t = t.chunk(row.part[1], -1)[row.part[0]]
        if row.basis == "fused" and heads:  # a head's queries and gates side by side
            return t.reshape(*call(), -1, 2 * width)
        if row.part and row.part[2]:
            return t.reshape(*call(), -1, row.part[1] * width).chunk(row.part[1], -1)[row.part[0]]
        return t.reshape(*call(), -1, width) if heads else t

    return shape
