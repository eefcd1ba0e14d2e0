#!/usr/bin/env python3
"""deep_model.py MODEL LAYERS OUT [LAYER]: a small model of many layers, which repeat those of
MODEL.

With LAYER, the weights of that layer's q_proj are too large by half for a quarter of the heads: a
fault that begins in one place and continues through all later layers. Only Python's own library.
"""
import json
import os
import re
import shutil
import struct
import sys

from damage import read, write

WIDTH = {"F32": 4, "F16": 2, "BF16": 2}


def grown(header, data, layers):
    """The header and the data of a model of this many layers."""
    there = 1 + max(int(m[1]) for m in (re.search(r"layers\.(\d+)\.", name) for name in header) if m)
    out, parts, at = {}, [], 0

    def put(name, entry):
        nonlocal at
        begin, end = entry["data_offsets"]
        out[name] = dict(entry, data_offsets=[at, at + end - begin])
        parts.append(data[begin:end])
        at += end - begin

    for name, entry in sorted(header.items()):
        if "data_offsets" not in entry:
            continue
        m = re.search(r"layers\.(\d+)\.", name)
        for layer in range(int(m[1]), layers, there) if m else [None]:
            put(name if layer is None else name.replace(m[0], f"layers.{layer}."), entry)
    return out, b"".join(parts)


def enlarge(header, data, name):
    """The last quarter of the rows of a float16 or float32 matrix, by half."""
    entry = header[name]
    begin, end = entry["data_offsets"]
    begin += (end - begin) // 4 * 3
    kind = {"F32": "f", "F16": "e"}[entry["dtype"]]
    n = (end - begin) // WIDTH[entry["dtype"]]
    rows = struct.unpack(f"<{n}{kind}", data[begin:end])
    return data[:begin] + struct.pack(f"<{n}{kind}", *(1.5 * x for x in rows)) + data[end:]


def main():
    source, layers, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    os.mkdir(out)
    with open(os.path.join(source, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    config["num_hidden_layers"] = layers
    config["layer_types"] = config["layer_types"][:1] * layers
    with open(os.path.join(out, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    shutil.copy(os.path.join(source, "tokenizer.json"), out)
    header, data = grown(*read(os.path.join(source, "model.safetensors")), layers)
    if len(sys.argv) > 4:
        data = enlarge(header, data, f"model.layers.{int(sys.argv[4])}.self_attn.q_proj.weight")
    write(os.path.join(out, "model.safetensors"), header, data)


if __name__ == "__main__":
    main()
