"""globs.py: patterns for checkpoint names, with the rules of `vernier --points`.

`*` matches any run of characters, `?` any one, `{a,b}` either (braces may nest), any other character itself. A pattern
matches the whole name.
"""

import difflib
import re
from functools import lru_cache
from typing import Iterable, List, Pattern, Sequence, Union

from .numbers import RecordingError

LONGEST = 255  # bytes, as in vernier
MEANS = {"*": ".*", "?": ".", "{": "(?:", "}": ")"}  # as regular expressions


@lru_cache(maxsize=None)
def compiled(pattern: str) -> "Pattern[str]":
    """The pattern as a regular expression. Raises RecordingError: the pattern is not valid."""
    if not pattern:
        raise RecordingError("empty pattern")
    if len(pattern.encode()) > LONGEST:
        raise RecordingError(f"pattern of {len(pattern.encode())} bytes; at most {LONGEST}")
    depth, out = 0, ""
    for c in re.sub(r"\*+", "*", pattern):  # ** means *, and would be slower
        depth += (c == "{") - (c == "}")
        if depth < 0:
            break
        out += "|" if c == "," and depth else MEANS.get(c) or re.escape(c)
    if depth != 0:
        raise RecordingError(f"pattern '{pattern}': braces do not match")
    return re.compile(out, re.DOTALL)


def match(pattern: str, name: str) -> bool:
    """Whether the pattern selects the checkpoint name: `*` any characters, `?` any one, `{a,b}` a or b.

    Raises RecordingError: an empty pattern, one of more than 255 bytes, or braces that do not match.
    """
    return compiled(pattern).fullmatch(name) is not None


def listed(patterns: Union[str, Sequence[str]]) -> List[str]:
    """One pattern, or several, as a list."""
    return [patterns] if isinstance(patterns, str) else list(patterns)


def hint(word: str, names: Iterable[str]) -> str:
    """The text "; did you mean layer0.q_rope?", or "" if no name is near. "q_rope" is near: only the layer is
    missing."""
    known = list(names)
    near = difflib.get_close_matches(word, known, 1, 0.75) or [n for n in known if n.partition(".")[2] == word]
    return f"; did you mean {near[0]}?" if near else ""


def select(patterns: Union[str, Sequence[str]], names: Iterable[str]) -> List[str]:
    """The names that any of the patterns selects, in the order of names. Raises RecordingError: a pattern selects
    none."""
    all_names = list(names)
    for p in listed(patterns):
        if not any(match(p, n) for n in all_names):
            meant = [g for g in (f"layer*.{p}", f"{p}.*") if len(g.encode()) <= LONGEST
                     and any(match(g, n) for n in all_names)]
            said = f"; did you mean {meant[0]}?" if meant else hint(p, all_names)
            raise RecordingError(f"points: '{p}' matches no checkpoint of this model{said}")
    return [n for n in all_names if any(match(p, n) for p in listed(patterns))]
