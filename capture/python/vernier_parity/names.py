"""names.py: the names of tensors and the words of their dims: where a tensor stands in the file, and which name is
nearly a checkpoint's."""

import difflib
import re
from typing import List, Optional, Tuple

from . import points

LAYER = re.compile(r"layer(0|[1-9][0-9]{0,6})\.([^./]+)")
BARE_LAYER = re.compile(r"layer(0|[1-9][0-9]{0,6})")
# Layer0.q_rope, blk.0.q_rope, layer00.q_rope, layer[0].q_rope, model.layers.0.q_rope
NEARLY_LAYER = re.compile(r"(?:[A-Za-z_]+[._-])*[A-Za-z]*[._[-]?([0-9]{1,7})]?[._-]([^./]+)")
LONGEST_NAME = 127  # bytes


def words_of(dims: str) -> List[str]:
    """One word an axis; several in brackets are one: "token (head dim)" has two."""
    return re.findall(r"\([^()]*\)|[^\s()]+", dims)


def place_of(name: str) -> Tuple[int, str]:
    """(layer, point); another engine's names are points outside layers, whose layer is -1."""
    found = LAYER.fullmatch(name)
    return (int(found[1]), found[2]) if found else (-1, name)


def path_of(name: str) -> str:
    """Where its tensor is in the group of a step."""
    layer, point = place_of(name)
    return point if layer < 0 else f"layer{layer}/{point}"


def wrong_with(name: str) -> Optional[str]:
    """Why a tensor cannot have this name; None: it can."""
    if not name or "/" in name or name in (".", "..") or len(name.encode()) > LONGEST_NAME or not name.isprintable():
        return f"{name!r}: a name has 1 to {LONGEST_NAME} printable bytes and no slash"
    return f"{name}: what of it? {name}.output, say" if BARE_LAYER.fullmatch(name) else None


def meant_by(name: str) -> Optional[Tuple[str, str]]:
    """Of a name that is nearly a checkpoint's: what of it is, and the checkpoint that is meant. None: it is one, or no such name."""
    layer, point = place_of(name)
    if point in points.known() and (point in points.OUTSIDE) == (layer < 0):
        return None
    found = NEARLY_LAYER.fullmatch(name)
    bare = found[2] if found else name
    strict = found is not None and layer < 0  # blk.3.rope may be another engine's own name
    near = difflib.get_close_matches(bare, list(points.known()), 1, 0.85 if strict else 0.75)
    if not near:
        return None
    return bare, near[0] if near[0] in points.OUTSIDE else f"layer{int(found[1]) if found else 0}.{near[0]}"
