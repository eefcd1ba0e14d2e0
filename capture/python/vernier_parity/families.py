"""families.py: the checkpoints of each family of models, in execution order, and the modules that hold them.

The table is families.json, printed from the program's plans: its lists have rows, and [LIST, FIRST, END] for rows of a
list before.
"""

import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple


class Row(NamedTuple):
    """A checkpoint."""

    point: str
    axes: str
    basis: str
    op: str
    on_demand: bool = False
    module: Optional[str] = None  # below the layer, or the body; "": the layer itself; None: no module has it
    # the module returns it ("heads": heads before tokens), or as the last but one or last of three
    # things ("1", "2"), or would for one slot of a token ("each"); it takes it ("in"; "in1", "in2":
    # in the second or third place), or takes the ids whose rows it is ("rows")
    how: str = "out"
    part: Optional[Tuple[int, int, bool]] = None  # part i of n of the module's columns; True: of those of each head


class Family(NamedTuple):
    """The checkpoints before the layers, in a layer by its kind ("": all alike), and behind the layers."""

    before: List[Row]
    layer: Dict[str, List[Row]]
    behind: List[Row]

    def rows_of(self, n: int, kinds: Optional[Sequence[str]]) -> List[Row]:
        """The checkpoints of layer n. kinds: of places.kinds_of."""
        of = self.layer.get(kinds[n] if kinds else "full_attention")
        return of or self.layer[next(iter(self.layer))]


def _read(path: str) -> Dict[str, Family]:
    """The families by name; one of text also without the ending of its name."""
    with open(path, encoding="utf-8") as f:
        held: Dict[str, Any] = json.load(f)
    lists: Dict[str, List[Row]] = {}
    for name, rows in held["lists"].items():
        lists[name] = []
        for row in rows:
            lists[name] += lists[row[0]][row[1] : row[2]] if isinstance(row[1], int) else [Row(*row[:4], **row[4])]
    found: Dict[str, Family] = {}
    for name, (before, layer, behind) in held["families"].items():
        of = Family(lists[before], {kind: lists[x] for kind, x in layer.items()}, lists[behind])
        found.update({name: of, name[: -len("_text")] if name.endswith("_text") else name: of})
    return dict(sorted(found.items()))


FAMILIES = _read(os.path.join(os.path.dirname(__file__), "families.json"))
