"""names.py: names and dims of tensors: the place of a tensor in the file, and names that resemble a checkpoint name."""

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
    """The axes of a dims string, one word each. Words in brackets are one axis: "token (head dim)" has two."""
    return re.findall(r"\([^()]*\)|[^\s()]+", dims)


def place_of(name: str) -> Tuple[int, str]:
    """(layer, point) of a name. A name that is not a checkpoint of a layer is a point outside layers: layer -1."""
    found = LAYER.fullmatch(name)
    return (int(found[1]), found[2]) if found else (-1, name)


def path_of(name: str) -> str:
    """The path of the named tensor within the group of its step."""
    layer, point = place_of(name)
    return point if layer < 0 else f"layer{layer}/{point}"


def wrong_with(name: str) -> Optional[str]:
    """The reason why a tensor cannot have this name, or None if it can."""
    if not name or "/" in name or name in (".", "..") or len(name.encode()) > LONGEST_NAME or not name.isprintable():
        return f"{name!r}: a name has 1 to {LONGEST_NAME} printable bytes and no slash"
    return f"{name}: what of it? {name}.output, say" if BARE_LAYER.fullmatch(name) else None


def meant_by(name: str) -> Optional[Tuple[str, str]]:
    """(matching part, checkpoint name) if the name resembles a checkpoint name; None if it is one, or resembles
    none."""
    layer, point = place_of(name)
    if point in points.known() and (point in points.OUTSIDE) == (layer < 0):
        return None
    found = NEARLY_LAYER.fullmatch(name)
    bare = found[2] if found else name
    strict = found is not None and layer < 0  # blk.3.rope may be a name of another engine
    near = difflib.get_close_matches(bare, list(points.known()), 1, 0.85 if strict else 0.75)
    if not near:
        return None
    return bare, near[0] if near[0] in points.OUTSIDE else f"layer{int(found[1]) if found else 0}.{near[0]}"
