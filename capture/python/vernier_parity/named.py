"""named.py: records an engine whose parts have the names of transformers' modules (MLX, exported graphs).

    model.layers.3.self_attn.q_proj    what it returns is layer3.q_proj
    model.layers.3.self_attn.o_proj    what it takes is layer3.attn_context
"""

import re
from typing import Any, Mapping

from .families import FAMILIES
from .numbers import NARROW, Ids, host
from .recorder import Recorder


class Names:
    """Records a model of a family by the names of its modules."""

    def __init__(self, rec: Recorder, config: Mapping[str, Any]) -> None:
        """config: the settings of config.json. Of a family that is not known, Llama's names are taken."""
        kind = str(config.get("model_type", ""))
        self.rec, self.kinds = rec, config.get("layer_types")
        self.family = FAMILIES.get(kind) or FAMILIES.get(f"{kind}_text") or FAMILIES["llama"]
        heads = config.get("num_attention_heads") or config.get("n_head") or 1
        self.heads = {"head": heads, "kv_head": config.get("num_key_value_heads") or heads}

    def took(self, path: str, taken: Any, made: Any) -> None:
        """Record what the module at this path takes, and what it returns; None: not known."""
        at = re.search(r"(?:^|\.)(?:layers|h)\.(\d+)(?:\.(.+))?$", path)
        if at:
            rows, module, prefix = (self.family.rows_of(int(at.group(1)), self.kinds), at.group(2) or "",
                                    f"layer{at.group(1)}.")
        else:
            rows, module, prefix = [*self.family.before, *self.family.behind], path.rpartition(".")[2], ""
        for row in rows:
            x = made if row.how == "out" else taken if row.how == "in" else None
            if row.module == module and hasattr(x, "shape") and not (row.on_demand or row.part or row.op == "scale"):
                self.put(prefix + row.point, x, f"batch {row.axes}")

    def rotated(self, layer: int, point: str, x: Any) -> None:
        """Record q_rope or k_rope, (B, heads, T, K)."""
        self.put(f"layer{layer}.{point}", x, f"batch {'head' if point[0] == 'q' else 'kv_head'} token dim")

    def fused(self, layer: int, x: Any) -> None:
        """Record the parts of queries, keys and values in one row, (B, T, (heads + 2 kv_heads) K)."""
        a, heads, groups = host(x)[0], self.heads["head"], self.heads["kv_head"]
        width, at = a.shape[-1] // (heads + 2 * groups), 0
        for part, n, word in (("q", heads, "head"), ("k", groups, "kv_head"), ("v", groups, "kv_head")):
            self.put(f"layer{layer}.{part}_proj", a[..., at : at + n * width], f"batch token {word} dim")
            at += n * width

    def put(self, name: str, x: Any, dims: str) -> None:
        """Record x, unless this step has the name. Heads that share an axis get their own."""
        if name in self.rec._names:
            return
        a, word = host(x)
        words = dims.split()
        if a.ndim == len(words) - 1 and words[-1] == "dim":
            heads = self.heads.get(words[-2], 1)
            own = a.shape[1] == self.rec.tokens  # else a row is a head of a token
            a = a.reshape(*a.shape[:2], heads, -1) if own else a.reshape(a.shape[0], -1, heads, a.shape[-1])
        self.rec.put(name, a, dims, dtype=word, stacklevel=4)


def width_of(config: Mapping[str, Any]) -> int:
    """The numbers of a head."""
    return int(config.get("head_dim") or config.get("hidden_size", 0) // (config.get("num_attention_heads") or 1))


def ids_of(x: Any) -> Ids:
    """Token ids as a recording has them: one prompt without its batch."""
    a = host(x)[0]
    return a[0] if a.ndim == 2 and a.shape[0] == 1 else a


def word_of(dtype: Any) -> str:
    """The precision that a tensor of this format claims: "float32" is f32."""
    text = str(dtype).rpartition(".")[2]
    return NARROW.get(text) or text.replace("float", "f")
