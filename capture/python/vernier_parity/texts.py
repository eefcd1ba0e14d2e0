"""The text of tokens, from a model's tokenizer.json: byte-level BPE, as of GPT-2, Qwen and Llama 3."""
import json
import os
from typing import Any, Dict, List, Optional, Sequence

from .printed import printed


def _bytes_of() -> Dict[str, int]:
    """The byte that each character of a byte-level vocabulary stands for: printable Latin-1 for itself, the others
    from U+0100 on."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in own]
    return {**{chr(b): b for b in own}, **{chr(256 + i): b for i, b in enumerate(others)}}


def _is_byte_level(part: Any) -> bool:
    steps = part.get("decoders", []) if isinstance(part, dict) else []
    return isinstance(part, dict) and (part.get("type") == "ByteLevel" or any(map(_is_byte_level, steps)))


def of_tokens(directory: str, ids: Sequence[int]) -> Optional[List[str]]:
    """The text of each id, escaped as checkpoint.md has it, "" where it has none; None: no tokenizer of this kind is
    there."""
    try:
        with open(os.path.join(directory, "tokenizer.json"), encoding="utf-8") as f:
            read = json.load(f)
        if not _is_byte_level(read.get("decoder")):
            return None
        wanted, byte = set(map(int, ids)), _bytes_of()
        text = {i: bytes(byte[c] for c in token) if byte.keys() >= set(token) else token.encode()
                for token, i in read["model"]["vocab"].items() if i in wanted}
        text.update({t["id"]: t["content"].encode() for t in read.get("added_tokens", ()) if t["id"] in wanted})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    said = (text.get(int(i), b"").replace(b"\\", b"\\\\") for i in ids)
    return [printed(t.decode("utf-8", "surrogateescape")) for t in said]
