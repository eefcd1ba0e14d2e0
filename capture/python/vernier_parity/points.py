"""points.py: the checkpoints of each family of models, in execution order (`vernier points MODEL`)."""

from functools import lru_cache
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence

from .families import FAMILIES, Row


class Point(NamedTuple):
    """One checkpoint of a model."""

    name: str  # "layer3.q_rope"
    layer: int  # -1 outside layers
    row: Row
    op: str  # of the row; where that is a second name of the checkpoint before it, the operation of that


OUTSIDE = tuple(dict.fromkeys(row.point for family in FAMILIES.values() for row in [*family.before, *family.behind]))
BEHIND = tuple(dict.fromkeys(row.point for family in FAMILIES.values() for row in family.behind))  # the layers


def of_model(family: str, layers: int, layer_types: Optional[Sequence[str]] = None) -> List[Point]:
    """Every checkpoint of a model in execution order. layer_types: the kind of each layer, if they differ."""
    of = FAMILIES[family]
    every = [(-1, of.before), *((n, of.rows_of(n, layer_types)) for n in range(layers)), (-1, of.behind)]
    found: List[Point] = []
    for layer, row in ((layer, row) for layer, rows in every for row in rows):
        name = f"layer{layer}.{row.point}" if layer >= 0 else row.point
        found.append(Point(name, layer, row, row.op or found[-1].op))
    return found


@lru_cache(maxsize=None)
def known() -> Dict[str, Row]:
    """The row of each point, whatever the family: Llama's, else Mixtral's, else the first found, GPT-2's last."""
    table: Dict[str, Row] = {}
    first = {"llama": 0, "mixtral": 1, "gpt2": 3}
    for family in map(FAMILIES.__getitem__, sorted(FAMILIES, key=lambda name: first.get(name, 2))):
        for row in [*family.before, *(r for rows in family.layer.values() for r in rows), *family.behind]:
            table.setdefault(row.point, row._replace(op=row.op or "add"))
    return table


@lru_cache(maxsize=None)
def words() -> FrozenSet[str]:
    """The words allowed in dims of a checkpoint: the axes of all points, and those of batches and paged caches."""
    return frozenset(w for row in known().values() for w in row.axes.split()) | {"batch", "block", "slot"}
