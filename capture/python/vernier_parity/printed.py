"""printed.py: text of files and paths as it is shown: characters that a terminal would obey, or that cannot be seen,
become codes.

Names, facts and paths come from files of others: they could colour, hide, reverse or forge lines. Errors and warnings
of this package, and all that `python -m vernier_parity` prints, go through `printed`. The codes are those of vernier:
`\\n`, `\\u{202e}`, `\\xff` for a byte that is no UTF-8. So does the beginning of a command that runners of CI look for
in a log: `##[` and `##vso[` anywhere, `::` at the start.
"""

import re
import unicodedata
import warnings

_PLAIN = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# marks and letters without a shape (Unicode's Default_Ignorable_Code_Point)
_UNSEEN = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10),
           *range(0xE0000, 0xE1000)}
MOST_MARKS = 4  # on one character
_COMMAND = re.compile(r"^( *):(?=:)|#(?=#(?:vso)?\[)")


def printed(text: object) -> str:
    """The text in one line, without characters that a terminal would obey."""
    said = _COMMAND.sub(lambda m: f"{m[1] or ''}\\u{{{ord(m[0][-1]):x}}}", str(text))
    if said.isascii() and said.isprintable():
        return said
    out, marks = [], 0
    for c in said:
        kind, at = unicodedata.category(c), ord(c)
        seen = kind[0] not in "CZ" and at not in _UNSEEN or c == " "
        if seen:
            marks = marks + 1 if kind in ("Mn", "Me") else 0
        if not seen or marks > MOST_MARKS:
            # Python reads a byte that is no UTF-8 as a lone surrogate
            c = _PLAIN.get(c) or (f"\\x{at - 0xDC00:02x}" if 0xDC80 <= at <= 0xDCFF else f"\\u{{{at:x}}}")
        out.append(c)
    return "".join(out)


def printed_json(text: str) -> str:
    """JSON whose strings hold no command that runners of CI obey."""
    return re.sub(r"#(?=#(?:vso)?\[)", r"\\u0023", text)


def warn(text: str, stacklevel: int) -> None:
    """warnings.warn of a text with names of files and tensors."""
    warnings.warn(printed(text), stacklevel=stacklevel + 1)
