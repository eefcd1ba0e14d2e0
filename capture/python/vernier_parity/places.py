"""places.py: where the modules of a PyTorch model hold each checkpoint (vernier help models.md, chapter 2)."""

import sys
from types import MethodType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .families import FAMILIES, Row
from .points import Point

Shape = Callable[[Any], Any]
ROTATION = "apply_rotary_pos_emb"  # the function that rotates queries and keys
HEAD = "lm_head"  # of the whole model, whatever its name there
# embedding, layers, and the module that gets the positions
BODIES = (("wte", "h", "wpe"), ("embed_tokens", "layers", "rotary_emb"))


class Parts(NamedTuple):
    """The parts of a model of a known family."""

    model: Any  # with the config, the weights and the head
    family: str  # model_type of the text model
    body: Any  # embeddings, layers, last norm
    layers: List[Any]
    of_layers: str  # the body's name for them
    head: Optional[Any]  # the module that makes the logits
    embedding: Any
    positions: Any  # the module that gets the positions


def parts_of(model: Any) -> Optional[Parts]:
    """The parts of a HuggingFace causal LM of a known family, also of one inside a larger model; None of others."""
    for body in model.modules():
        config = getattr(body, "config", None)
        has = dict(body.named_children())  # its own modules, not those that it forwards from a module inside
        names = next((n for n in BODIES if set(n) <= set(has)), None)
        owner = _owner(model, body) if names and getattr(config, "model_type", None) in FAMILIES else None
        if names and owner is not None:
            embedding, layers, positions = (has[n] for n in names)
            if not all(map(_own_experts, layers)):
                return None
            return Parts(owner, config.model_type, body, list(layers)[: config.num_hidden_layers], names[1],
                         owner.get_output_embeddings(), embedding, positions)
    return None


def _own_experts(layer: Any) -> bool:
    """Whether a layer's experts, if any, are those of its family, not kernels that get other arguments."""
    mlp = getattr(layer, "mlp", None)
    experts = getattr(mlp, "experts", None)
    if experts is None:
        return True
    own = vars(mlp).get("forward")  # a method is a kernel's; accelerate puts a partial function there
    return sources_of(experts) is sources_of(layer) and (
        not isinstance(own, MethodType) or own.__module__ == type(mlp).__module__)


def _owner(model: Any, body: Any) -> Any:
    """The outermost module of transformers that holds the body. A user's own module around it has neither config nor
    head; PEFT's module returns those of the model inside."""
    return next((m for m in model.modules() if hasattr(type(m), "get_output_embeddings") and
                 hasattr(getattr(m, "config", None), "get_text_config") and any(x is body for x in m.modules())), None)


def kinds_of(layers: Sequence[Any], config: Any) -> Optional[List[str]]:
    """The kind of each layer in the tables of a family; None: they are alike, or the family is not known."""
    family = FAMILIES.get(getattr(config, "model_type", ""))
    if family and "dense" in family.layer:
        return ["experts" if hasattr(layer.mlp, "experts") else "dense" for layer in layers]
    return getattr(config, "layer_types", None)


def path_of(layers: str, n: int, row: Row) -> str:
    """The path in a body of the module that takes or returns a checkpoint, in layer n or outside layers (-1)."""
    return f"{layers}.{n}.{row.module}".rstrip(".") if n >= 0 else str(row.module)


def standard(model: Any) -> Dict[Tuple[str, str], Tuple[str, List[str]]]:
    """Checkpoints that a function makes, of any model with one body of embeddings and layers: (path of a module, "in"
    or "out" or, of a module that rotates, the point) -> (name, axes of what it takes or returns)."""
    found: Dict[Tuple[str, str], Tuple[str, List[str]]] = {}
    bodies = [(path, m, names) for path, m in model.named_modules() for names in BODIES
              if set(names[:2]) <= set(dict(m.named_children()))]
    if len(bodies) != 1:
        return found
    path, body, (_, layers, _) = bodies[0]
    config = getattr(body, "config", None)
    family, kinds = FAMILIES.get(getattr(config, "model_type", "")), kinds_of(getattr(body, layers), config)
    for row in family.before if family else ():
        if row.op == "add":
            found[f"{path}.{row.module}".lstrip("."), "in"] = (row.point, ["batch", *row.axes.split()])
    for n, layer in enumerate(getattr(body, layers)):
        for row in family.rows_of(n, kinds) if family else _rows_alike(layer):
            if row.op == "rope" and hasattr(getattr(layer, "self_attn", None), "register_forward_hook"):
                at, axes = f"{layers}.{n}.self_attn", ["batch", row.axes.split()[1], "token", "dim"]
                found[f"{path}.{at}".lstrip("."), row.point] = (f"layer{n}.{row.point}", axes)
            elif row.module == "" or row.how == "in":
                at, axes = path_of(layers, n, row), ["batch", *row.axes.split()]
                found.setdefault((f"{path}.{at}".lstrip("."), row.how), (f"layer{n}.{row.point}", axes))
    return found


def _rows_alike(layer: Any) -> List[Row]:
    """The rows of the family whose layer is the most like this one by the names of its own modules, Llama's first."""
    own = {name for name, _ in layer.named_children()}
    tables = [rows for f in (FAMILIES["llama"], *FAMILIES.values()) for rows in f.layer.values()]
    return min(tables, key=lambda rows: len({r.module.split(".")[0] for r in rows if r.module} ^ own))


def mixer_of(layer: Any) -> Tuple[Any, bool]:
    """(the module of the layer that mixes tokens, True if that is a Gated DeltaNet)."""
    net = getattr(layer, "linear_attn", None)
    return (net, True) if net is not None else (layer.attn if hasattr(layer, "attn") else layer.self_attn, False)


def sources_of(module: Any) -> Any:
    """The Python module with the functions that a module calls: that of the class that defines forward, not of a class
    that inherits it."""
    return sys.modules.get(next(c for c in type(module).__mro__ if "forward" in vars(c)).__module__)


def module_of(parts: Parts, path: str) -> Any:
    """The module at a path in the body; None: this model has no such module (but a fused one, for example)."""
    try:
        return parts.head if path == HEAD else parts.body.get_submodule(path)
    except AttributeError:
        return module_of(parts, path.replace("q_b_proj", "q_proj")) if "q_b_proj" in path else None


def width_of(mixer: Any, point: str) -> int:
    """The numbers of a head of an attention."""
    if hasattr(mixer, "kv_lora_rank"):
        return int(mixer.v_head_dim if point == "attn_context" else mixer.qk_head_dim)
    return int(mixer.head_dim)


def shape_of(parts: Parts, point: Point, module: Any, call: Callable[[], Tuple[int, int]]) -> Shape:
    """What makes the checkpoint of what the module takes or returns. call: (batch, tokens) of the call in progress."""
    row, heads = point.row, point.row.axes.split()[1:] in (["head", "dim"], ["kv_head", "dim"], ["lin_head", "dim"])
    mixer = mixer_of(parts.layers[max(point.layer, 0)])[0]
    width = 0 if not heads else mixer.head_v_dim if "lin_head" in row.axes else width_of(mixer, row.point)
    cap = getattr(parts.body.config, "final_logit_softcapping", None) if row.point == "logits" else None

    def shape(t: Any) -> Any:
        if row.module == HEAD:  # the model's own code puts a cap on the logits
            return t if cap is None else (t / cap).tanh() * cap
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
        t = t.transpose(1, 2) if row.how == "heads" else t
        if not heads and t.ndim == 2 + (row.how == "each"):  # rows of all tokens, without a batch
            t = t.reshape(*call(), *t.shape[1:])
        return t.reshape(*call(), -1, width) if heads else t

    return shape
