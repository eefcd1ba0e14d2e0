"""points.py: the checkpoints of each family of models, in execution order (`vernier points MODEL`)."""

from functools import lru_cache
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple


class Point(NamedTuple):
    """One checkpoint of a model."""

    name: str  # "layer3.q_rope"
    layer: int  # -1 outside layers
    point: str
    axes: str
    basis: str
    op: str
    on_demand: bool


OUTSIDE = ("token_embed", "pos_embed", "embed", "final_norm", "logits")  # outside layers
ON_DEMAND = ("k_cache", "v_cache", "attn_scores", "attn_probs", "gate_act")
Row = Tuple[str, str, str, str]  # point, axes, basis, operation

H, Q, K, A, F = "token hidden", "token head dim", "token kv_head dim", "head token key", "token ffn"
_CACHE: List[Row] = [("k_cache", "key kv_head dim", "kv_head", "attention"),
                     ("v_cache", "key kv_head dim", "kv_head", "attention"),
                     ("attn_scores", A, "score", "attention"), ("attn_probs", A, "score", "attention"),
                     ("attn_context", Q, "head", "attention")]
_ROPE: List[Row] = [("q_rope", Q, "head", "rope"), ("k_rope", K, "kv_head", "rope")]
_HEAD_NORMS: List[Row] = [("q_norm", Q, "head", "rms_norm"), ("k_norm", K, "kv_head", "rms_norm")]
_SWIGLU: List[Row] = [("gate_proj", F, "ffn", "linear"), ("up_proj", F, "ffn", "linear"), ("gate_act", F, "ffn", "act"),
                      ("mlp_act", F, "ffn", "gated"), ("down_proj", H, "hidden", "linear"),
                      ("output", H, "hidden", "add")]
_GELU: List[Row] = [("up_proj", F, "ffn", "linear"), ("mlp_act", F, "ffn", "act"), *_SWIGLU[-2:]]
_GDN: List[Row] = [
    ("gdn_qkv", "token lin_mix", "lin_mix", "linear"), ("gdn_z", "token lin_head dim", "lin_v", "linear"),
    ("gdn_b", "token lin_head", "lin_head", "linear"), ("gdn_a", "token lin_head", "lin_head", "linear"),
    ("gdn_conv", "token lin_mix", "lin_mix", "causal_conv"),
    ("gdn_conv_state", "row lin_mix", "lin_mix", "causal_conv"),
    ("gdn_q_conv", "token lin_key dim", "lin_k", "slice"), ("gdn_k_conv", "token lin_key dim", "lin_k", "slice"),
    ("gdn_v", "token lin_head dim", "lin_v", "slice"), ("gdn_q", "token lin_key dim", "lin_k", "l2_norm"),
    ("gdn_k", "token lin_key dim", "lin_k", "l2_norm"), ("gdn_beta", "token lin_head", "lin_head", "act"),
    ("gdn_g", "token lin_head", "lin_head", "log_decay"), ("gdn_core", "token lin_head dim", "lin_v", "delta_rule"),
    ("gdn_state", "lin_head key_dim dim", "state", "delta_rule"),
    ("gdn_norm", "token lin_head dim", "lin_v", "gated_norm")]
_QKV: List[Row] = [("q_proj", Q, "head", "linear"),
                   ("k_proj", K, "kv_head", "linear"), ("v_proj", K, "kv_head", "linear")]
_GATED: List[Row] = [("qg_proj", Q, "fused", "linear"), ("q_proj", Q, "head", "slice"),
                     ("attn_gate", Q, "head", "slice"), *_QKV[1:],
                     *_HEAD_NORMS, *_ROPE, *_CACHE, ("attn_gated", Q, "head", "gated")]


def _around(norm: str, mixer: Sequence[Row], mlp: Sequence[Row]) -> List[Row]:
    return [("attn_norm", H, "hidden", norm), *mixer, ("attn_out", H, "hidden", "linear"),
            ("attn_residual", H, "hidden", "add"),
            ("mlp_norm", H, "hidden", norm), *mlp]


_PLAIN = _around("rms_norm", [*_QKV, *_ROPE, *_CACHE], _SWIGLU)
_NORMED = _around("rms_norm", [*_QKV, *_HEAD_NORMS, *_ROPE, *_CACHE], _SWIGLU)
_THIRDS: List[Row] = [(p, axes, basis, "slice") for p, axes, basis, _ in _QKV]
_GPT2 = _around("layer_norm", [("c_attn", "token qkv", "fused", "linear"), *_THIRDS, *_CACHE], _GELU)
_HYBRID = {"linear_attention": _around("rms_norm", _GDN, _SWIGLU),
           "full_attention": _around("rms_norm", _GATED, _SWIGLU)}
FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen3_5", "qwen3_5_text")


def of_model(family: str, layers: int, layer_types: Optional[Sequence[str]] = None) -> List[Point]:
    """Every checkpoint of a model in execution order. layer_types: the kind of each layer, for Qwen3.5."""
    gpt2 = family == "gpt2"
    found: List[Point] = []

    def put(rows: Sequence[Row], layer: int = -1) -> None:
        for point, axes, basis, op in rows:
            found.append(Point(f"layer{layer}.{point}" if layer >= 0 else point, layer, point, axes, basis, op,
                               point in ON_DEMAND))

    if gpt2:
        put([("token_embed", H, "hidden", "embed"), ("pos_embed", H, "hidden", "positions")])
    put([("embed", H, "hidden", "add" if gpt2 else "embed")])
    for n in range(layers):
        put([("input", H, "hidden", "add" if n or gpt2 else "embed")], n)
        if family.startswith("qwen3_5"):
            put(_HYBRID[layer_types[n] if layer_types else "full_attention"], n)
        else:
            put(_GPT2 if gpt2 else _NORMED if family == "qwen3" else _PLAIN, n)
    put([("final_norm", H, "hidden", "layer_norm" if gpt2 else "rms_norm"),
         ("logits", "token vocab", "vocab", "linear")])
    return found


@lru_cache(maxsize=None)
def known() -> Dict[str, Row]:
    """The row of each point, whatever the family: the first row found."""
    rows = [("token_embed", H, "hidden", "embed"), ("pos_embed", H, "hidden", "positions"),
            ("embed", H, "hidden", "embed"),
            ("input", H, "hidden", "add"), ("final_norm", H, "hidden", "rms_norm"),
            ("logits", "token vocab", "vocab", "linear")]
    table: Dict[str, Row] = {}
    for row in [*rows, *_NORMED, *_GPT2, *_HYBRID["linear_attention"], *_HYBRID["full_attention"]]:
        table.setdefault(row[0], row)
    return table


@lru_cache(maxsize=None)
def words() -> FrozenSet[str]:
    """The words allowed in dims of a checkpoint: the axes of all points, and those of batches and paged caches."""
    return frozenset(w for row in known().values() for w in row[1].split()) | {"batch", "block", "slot"}
