"""contract.py: mutations of the contract: right numbers of another prompt, model, run or plan."""

import json
from typing import Any, Callable

import numpy as np

from ..edit import CannotEdit, Edit
from ..mutation import Change, Expected, Mutation, Needs, fails, refused

# ---- tokens ------------------------------------------------------------------------------------


def _with_list(name: str, change: Callable[[np.ndarray], Any], honest: bool = True) -> Callable[[Edit, Change], None]:
    """Changes the token ids or the positions; change: in place, or returns others."""
    def edit(e: Edit, c: Change) -> None:
        ids = c.side.list_of(name)
        other = change(ids)
        e.tokens(name, ids if other is None else other, honest)
    return edit


def _flip_middle(x: np.ndarray) -> None:
    x[x.size // 2] ^= 1


def _flip_first(x: np.ndarray) -> None:
    x[0] ^= 1


def _last_negative(x: np.ndarray) -> None:
    x[-1] = -1


def _last_less(x: np.ndarray) -> None:
    x[-1] -= 1


def _id_less(e: Edit, c: Change) -> None:
    for name in ("token_ids", "positions"):
        e.tokens(name, c.side.list_of(name)[:-1])


def _no_ids(e: Edit, c: Change) -> None:
    e.unlink("/run/token_ids")


def _as_it_is(e: Edit, c: Change) -> None:
    pass


# ---- the model ---------------------------------------------------------------------------------


def _config_key(times: int, *keys: str) -> Callable[[Edit, Change], None]:
    """Changes the first of these config keys that is present."""
    def edit(e: Edit, c: Change) -> None:
        try:
            config = json.loads(c.side.config or "")
            key = next(k for k in keys if k in config)
        except (ValueError, StopIteration):
            raise CannotEdit(f"/model: the config has none of the keys {', '.join(keys)}") from None
        config[key] *= times
        e.attribute("/model", "config", json.dumps(config, indent=2))
    return edit


def _config_cut(e: Edit, c: Change) -> None:
    e.attribute("/model", "config", '{"model_type": ')


def _weight(**columns: Any) -> Callable[[Edit, Change], None]:
    """Changes the middle row of the table of weights."""
    return lambda e, c: e.weight(c.side.weights // 2, **columns)


def _weight_missing(e: Edit, c: Change) -> None:
    e.fewer_weights()


# ---- the plan ----------------------------------------------------------------------------------


def _node(old: str, new: str) -> Callable[[Edit, Change], None]:
    return lambda e, c: e.line("/plan/nodes", old, new)


def _edge(e: Edit, c: Change) -> None:
    """Makes an addition use its second input twice."""
    assert c.side.plan
    for node in map(json.loads, c.side.plan["nodes"]):
        if node["op"] == "add":
            a, b = node["in"]
            e.line("/plan/nodes", f'"in": ["{a}", "{b}"]', f'"in": ["{b}", "{b}"]')
            return
    raise CannotEdit("/plan/nodes: the plan has no sum")


def _alias(e: Edit, c: Change) -> None:
    assert c.side.plan
    values = [json.loads(line) for line in c.side.plan["values"]]
    for value in reversed(values):
        if value.get("alias_of"):
            e.line("/plan/values", f'"alias_of": "{value["alias_of"]}"', f'"alias_of": "{values[0]["name"]}"')
            return
    raise CannotEdit("/plan/values: the plan has no second name")


def _context(e: Edit, c: Change) -> None:
    e.attribute("/plan", "context", 3)


# ---- the run -----------------------------------------------------------------------------------


def _no_engine(e: Edit, c: Change) -> None:
    e.attribute("/run", "engine", None)


def _precision(word: Any) -> Callable[[Edit, Change], None]:
    return lambda e, c: e.attribute("/run", "precision", word)


def _other_precision(e: Edit, c: Change) -> None:
    e.attribute("/run", "precision", "f16-acc16" if c.side.precision == "f16" else "f16")


_CONFIG, _PLAN, _WEIGHTS = Needs.CONFIG, Needs.PLAN, Needs.WEIGHTS
_OTHER_PLAN, _OTHER_WEIGHT = refused("config", "plan: "), refused("weights", "weights: ")

MUTATIONS = [
    Mutation("other-id", "one token is another", want=refused("token_ids", "token ids: number"),
             edit=_with_list("token_ids", _flip_middle)),
    # found by the steps or, if a file lacks them, by the other side
    Mutation("id-less", "one token fewer than the steps have", edit=_id_less,
             want=Expected(status=None, allow="token_ids", says="token")),
    Mutation("id-rot", "a changed token id with its old digest", want=fails("its digest is"),
             edit=_with_list("token_ids", _flip_first, honest=False)),
    Mutation("id-negative", "an id outside the vocabulary", want=fails("/run/token_ids"),
             edit=_with_list("token_ids", _last_negative)),
    Mutation("no-ids", "no token ids", want=fails("/run/token_ids"), edit=_no_ids),
    Mutation("positions-later", "every position increased by one", want=refused("positions", "positions: token 0"),
             edit=_with_list("positions", lambda x: x + 1)),
    Mutation("position-other", "one position is that of another token", want=refused("positions", "positions: "),
             edit=_with_list("positions", _last_less)),
    Mutation("no-engine", "no attribute engine", want=fails("attribute engine"), edit=_no_engine),
    Mutation("no-precision", "no attribute precision", want=fails("attribute precision"), edit=_precision(None)),
    Mutation("precision-unknown", "an unknown precision", want=fails("precision"), edit=_precision("approximate")),
    Mutation("precision-other", "a precision other than the floor's", Needs.FLOOR,
             refused("precision", "the floor was run in"), edit=_other_precision),
    Mutation("config-eps", "a config with ten times the epsilon", _CONFIG, refused("config", "config: "),
             edit=_config_key(10, "rms_norm_eps", "layer_norm_epsilon")),
    Mutation("config-heads", "a config with twice the heads", _CONFIG, refused("config", "config: "),
             edit=_config_key(2, "num_attention_heads", "n_head")),
    Mutation("config-cut", "a truncated config", _CONFIG, refused("config", "not a JSON object"), edit=_config_cut),
    Mutation("weight-other", "one weight with other numbers", _WEIGHTS, _OTHER_WEIGHT,
             edit=_weight(digest=b"0" * 32, rms=123.0)),
    Mutation("weight-digest", "one weight with other bits but equal statistics", _WEIGHTS, _OTHER_WEIGHT,
             edit=_weight(digest=b"0" * 31 + b"1")),
    Mutation("weight-transposed", "one weight of another shape", _WEIGHTS, refused("weights", "(7, 5)"),
             edit=_weight(shape=b"7x5")),
    Mutation("weight-renamed", "one weight under another name", _WEIGHTS, refused("weights", "not in the candidate"),
             edit=_weight(name=b"model.layers.0.self_attn.somebody.weight")),
    Mutation("weight-missing", "one weight that was never loaded", _WEIGHTS, refused("weights", "not in the candidate"),
             edit=_weight_missing),
    Mutation("plan-mask", "a plan without the causal mask", _PLAN, _OTHER_PLAN,
             edit=_node('"causal": 1', '"causal": 0')),
    Mutation("plan-eps", "a plan with another epsilon", _PLAN, _OTHER_PLAN, edit=_node('"eps": ', '"eps": 1')),
    Mutation("plan-edge", "a plan that adds one input twice", _PLAN, _OTHER_PLAN, edit=_edge),
    Mutation("plan-name", "a plan whose second name is that of another value", _PLAN, refused("config", "plan"),
             edit=_alias),
    Mutation("plan-context", "a plan with a shorter context", _PLAN, refused("config", "plan"), edit=_context),
    Mutation("plan-cut", "a plan that is not JSON", _PLAN, fails("/plan"), edit=_node('"op": ', '"op": {')),
    Mutation("earlier-run", "a correct recording of other tokens", Needs.EARLIER,
             refused("token_ids", "token ids: number"), edit=_as_it_is),
    Mutation("earlier-run-relabelled", "the same, relabelled with these token ids", Needs.EARLIER,
             Expected(many=True, anywhere=True), edit=_with_list("token_ids", lambda x: None)),
    Mutation("other-model", "a correct recording of other weights", Needs.UNRELATED, _OTHER_WEIGHT, edit=_as_it_is),
]
