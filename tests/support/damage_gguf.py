#!/usr/bin/env python3
"""damage_gguf.py FILE OUT KIND: a copy of a GGUF file with one thing wrong.

Only Python's own library, so that a damaged file owes nothing to the code that reads it.
"""
import struct
import sys

TENSOR = b"blk.0.attn_k.weight"


def main():
    source, out, kind = sys.argv[1:4]
    with open(source, "rb") as f:
        data = bytearray(f.read())

    def behind(name):
        """Where what follows a key or a tensor's name begins."""
        return data.index(struct.pack("<Q", len(name)) + name) + 8 + len(name)

    def put(at, form, value):
        struct.pack_into("<" + form, data, at, value)

    if kind == "magic":
        data[0:4] = b"GGML"
    elif kind == "git-lfs":
        data = bytearray(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 988097824\n")
    elif kind == "version-1":
        put(4, "I", 1)
    elif kind == "version-4":
        put(4, "I", 4)
    elif kind == "big-endian":
        data[4:8] = b"\0\0\0\3"
    elif kind == "counts":
        put(8, "Q", 1 << 60)
    elif kind == "value-type":
        put(behind(b"qwen2.block_count"), "I", 13)
    elif kind == "alignment":  # a key of the same length
        at = behind(b"qwen2.block_count")
        data[at - 17:at] = b"general.alignment"
    elif kind == "string-length":
        put(behind(b"tokenizer.ggml.model") + 4, "Q", 1 << 40)
    elif kind == "array-depth":
        put(behind(b"tokenizer.ggml.tokens") + 4, "I", 9)
    elif kind == "array-length":
        put(behind(b"tokenizer.ggml.tokens") + 8, "Q", 1 << 29)
    elif kind == "offset":
        at = behind(TENSOR) + 4 + 16 + 4
        put(at, "Q", struct.unpack_from("<Q", data, at)[0] + 32)
    elif kind == "truncated":
        del data[-100:]
    elif kind == "truncated-metadata":
        del data[300:]
    elif kind == "empty":
        data = bytearray()
    elif kind == "row":  # half a block more
        at = behind(TENSOR) + 4
        put(at, "Q", struct.unpack_from("<Q", data, at)[0] + 16)
    elif kind == "rank":
        put(behind(TENSOR), "I", 5)
    elif kind == "unknown-type":
        put(behind(TENSOR) + 4 + 16, "I", 99)
    elif kind == "unsupported-type":
        put(behind(TENSOR) + 4 + 16, "I", 17)
    elif kind == "architecture":
        at = behind(b"general.architecture") + 4 + 8
        data[at:at + 5] = b"mamba"
    elif kind == "missing":
        at = behind(TENSOR)
        data[at - len(TENSOR):at] = b"blk.0.attn_K.weight"
    elif kind == "left-over":
        put(behind(b"qwen2.block_count") + 4, "I", 1)
    elif kind == "heads":
        put(behind(b"qwen2.attention.head_count") + 4, "I", 5)
    else:
        sys.exit(f"damage_gguf.py: no kind named {kind}")
    with open(out, "wb") as f:
        f.write(data)


if __name__ == "__main__":
    main()
