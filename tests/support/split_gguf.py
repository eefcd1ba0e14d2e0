#!/usr/bin/env python3
"""split_gguf.py FILE PREFIX N: a GGUF file as PREFIX-0000i-of-0000N.gguf, as llama.cpp's gguf-split makes them.

The first file has the metadata and no tensor, the others have the tensors in turn. Only Python's own library.
"""
import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY, U16, I32 = 8, 9, 2, 5
ALIGNMENT = 32


def main():
    source, prefix, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(source, "rb") as f:
        data = f.read()
    n_tensors, n_keys = struct.unpack_from("<QQ", data, 8)
    at = 24

    def word(form):
        nonlocal at
        (x,) = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return x

    def string():
        nonlocal at
        length = word("Q")
        at += length
        return data[at - length:at]

    def skip(kind):
        nonlocal at
        if kind == STRING:
            string()
        elif kind == ARRAY:
            inner, count = word("I"), word("Q")
            for _ in range(count):
                skip(inner)
        else:
            at += SIZES[kind]

    for _ in range(n_keys):
        string()
        skip(word("I"))
    keys, tensors = data[24:at], []
    for _ in range(n_tensors):
        begin = at
        string()
        rank = word("I")
        at += 8 * rank + 4
        tensors.append((data[begin:at], word("Q")))
    begin = -(-at // ALIGNMENT) * ALIGNMENT
    ends = [offset for _, offset in tensors[1:]] + [len(data) - begin]

    def text(s):
        return struct.pack("<Q", len(s)) + s

    for part in range(n):
        mine = [(head, data[begin + offset:begin + end]) for (head, offset),
                end in zip(tensors, ends)][part - 1::n - 1] if part else []
        split = (text(b"split.no") + struct.pack("<IH", U16, part) + text(b"split.count") + struct.pack("<IH", U16, n) +
                 text(b"split.tensors.count") + struct.pack("<Ii", I32, n_tensors))
        out = b"GGUF" + struct.pack("<IQQ", 3, len(mine), 3 + (0 if part else n_keys)) + split + (b"" if part else keys)
        body = b""
        for head, values in mine:
            out += head + struct.pack("<Q", len(body))
            body += values + bytes(-len(values) % ALIGNMENT)
        with open(f"{prefix}-{part + 1:05}-of-{n:05}.gguf", "wb") as f:
            f.write(out + bytes(-len(out) % ALIGNMENT) + body)


main()
