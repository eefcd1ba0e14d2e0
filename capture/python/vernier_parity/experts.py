"""experts.py: the weights of experts one by one, as most files have them. transformers holds those of a layer in one
tensor, gate and up joined: side by side or, in gpt-oss, column by column in turn, and across."""

import re
from typing import Any, Callable, Iterator, Tuple

ONE = re.compile(r"(.*\.)(?:block_sparse_moe|mlp)(\.experts\.\d+\.)w([123])(\.weight)")
ALL = re.compile(r"(.*\.experts\.)(gate_up_proj|down_proj)(_bias)?")
OLD = {"1": "gate_proj", "2": "down_proj", "3": "up_proj"}
Part = Callable[[Any], Any]


def _itself(t: Any) -> Any:
    return t


def _part(e: int, which: int, of: int, in_turn: bool) -> Part:
    """What part `which` of `of` of expert e is, of the tensor of all experts."""
    def part(t: Any) -> Any:
        t = t[e]
        if in_turn:
            return t[..., which::of].T if t.ndim == 2 else t[which::of]
        n = len(t) // of
        return t[which * n : (which + 1) * n]
    return part


def apart(family: str, name: str, t: Any) -> Iterator[Tuple[str, str, Part]]:
    """(name, name in transformers' way, what makes it) of each weight in t, a tensor or array of a file or model.
    family "": t itself."""
    one, every = (ONE.fullmatch(name), ALL.fullmatch(name)) if family else (None, None)
    if every and t.ndim == (2 if every[3] else 3):
        kinds, end = ["gate_proj", "up_proj"] if every[2] == "gate_up_proj" else [every[2]], every[3] or ""
        for e in range(len(t)):
            for which, kind in enumerate(kinds):
                full = f"{every[1]}{e}.{kind}.{end[1:] or 'weight'}"
                yield full, full, _part(e, which, len(kinds), family == "gpt_oss")
    elif one:
        yield name, f"{one[1]}mlp{one[2]}{OLD[one[3]]}{one[4]}", _itself
    else:
        yield name, name.replace(".block_sparse_moe.", ".mlp.") if family else name, _itself
