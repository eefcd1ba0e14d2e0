#!/usr/bin/env python3
"""damage.py MODEL OUT KIND [ID]: a copy of a model directory with one thing wrong (massive: at token ID).

Only Python's own library, so that a damaged file owes nothing to the code that reads it.
"""
import json
import os
import shutil
import struct
import sys

FIRST = "model.embed_tokens.weight"
Q = "model.layers.0.self_attn.q_proj.weight"
NORM = "model.norm.weight"


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + n]), data[8 + n:]


def write(path, header, data, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text) if length is None else length) + text + data)


def main():
    source, out, kind = sys.argv[1:4]
    shutil.copytree(source, out)
    weights = os.path.join(out, "model.safetensors")
    config = os.path.join(out, "config.json")
    header, data = read(weights)

    def change_config(**fields):
        with open(config, encoding="utf-8") as f:
            c = json.load(f)
        for key, value in fields.items():
            c.pop(key, None) if value == "absent" else c.__setitem__(key, value)
        with open(config, "w", encoding="utf-8") as f:
            json.dump(c, f, indent=2)

    def drop(name):
        """Without this tensor; the rest moves up."""
        begin, end = header[name]["data_offsets"]
        del header[name]
        for e in header.values():
            if "data_offsets" in e and e["data_offsets"][0] >= end:
                e["data_offsets"] = [o - (end - begin) for o in e["data_offsets"]]
        write(weights, header, data[:begin] + data[end:])

    if kind == "no-config":
        os.unlink(config)
    elif kind == "config-not-json":
        with open(config, "w", encoding="utf-8") as f:
            f.write('{"model_type": "qwen2",\n "hidden_size": }\n')
    elif kind == "unknown-type":
        change_config(model_type="mamba2")
    elif kind == "rope-type":
        change_config(rope_parameters={"rope_type": "proportional", "rope_theta": 1e6, "factor": 2.0})
    elif kind == "quantised":
        change_config(quantization_config={"quant_method": "gptq"})
    elif kind == "activation":
        change_config(hidden_act="quick_gelu")
    elif kind == "wider":
        change_config(intermediate_size=256)
    elif kind == "no-weights":
        os.unlink(weights)
    elif kind == "empty":
        open(weights, "wb").close()
    elif kind == "truncated":
        os.truncate(weights, os.path.getsize(weights) - 1000)
    elif kind == "header-too-long":
        write(weights, header, data, length=1 << 40)
    elif kind == "header-not-json":
        write(weights, b"{" + b"x" * 63, data)
    elif kind == "text":
        with open(weights, "w", encoding="utf-8") as f:
            f.write("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 988097824\n")
    elif kind == "overlap":
        header[Q]["data_offsets"] = [o - 64 for o in header[Q]["data_offsets"]]
        write(weights, header, data)
    elif kind == "out-of-range":
        header[Q]["data_offsets"] = [o + (1 << 40) for o in header[Q]["data_offsets"]]
        write(weights, header, data)
    elif kind == "size-disagrees":
        header[Q]["shape"][0] += 1
        write(weights, header, data)
    elif kind == "shape-overflows":
        header[Q]["shape"] = [1 << 62, 1 << 62]
        write(weights, header, data)
    elif kind == "unknown-dtype":
        header[Q]["dtype"] = "Q7"
        write(weights, header, data)
    elif kind == "int-dtype":
        header[Q]["dtype"] = "I32"
        write(weights, header, data)
    elif kind == "transposed":
        header[FIRST]["shape"].reverse()
        write(weights, header, data)
    elif kind == "missing-tensor":
        drop(Q)
    elif kind == "left-over":
        header["model.layers.0.self_attn.o_proj.bias"] = {"dtype": "F32", "shape": [2],
                                                          "data_offsets": [len(data), len(data) + 8]}
        write(weights, header, data + bytes(8))
    elif kind == "nan":
        begin = header[NORM]["data_offsets"][0]
        write(weights, header, data[:begin] + struct.pack("<f", float("nan")) + data[begin + 4:])
    elif kind == "scaled":
        begin, end = header[NORM]["data_offsets"]
        n = (end - begin) // 4
        values = [1.01 * v for v in struct.unpack(f"<{n}f", data[begin:end])]
        write(weights, header, data[:begin] + struct.pack(f"<{n}f", *values) + data[end:])
    elif kind == "massive":
        # One channel of one token's embedding is 2000, as the first token's is in
        # many trained models.
        begin, end = header[FIRST]["data_offsets"]
        width, code = {"F32": (4, "<f"), "F16": (2, "<e")}[header[FIRST]["dtype"]]
        at = begin + width * (header[FIRST]["shape"][1] * int(sys.argv[4]) + 3)
        write(weights, header, data[:at] + struct.pack(code, 2000.0) + data[at + width:])
    elif kind in ("index-escapes", "index-absolute", "index-missing-file", "index-lies", "index-good", "index-forgets"):
        os.rename(weights, os.path.join(out, "model-00001-of-00001.safetensors"))
        name = {"index-escapes": "../../etc/passwd", "index-absolute": "/etc/passwd",
                "index-missing-file": "model-00002-of-00002.safetensors"}.get(
                    kind, "model-00001-of-00001.safetensors")
        names = {k: "model-00001-of-00001.safetensors" for k in header if k != "__metadata__"}
        names[Q] = name
        if kind == "index-forgets":
            del names[Q], names[NORM]
        if kind == "index-lies":
            names["model.layers.9.mlp.up_proj.weight"] = name
        with open(os.path.join(out, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
            json.dump({"metadata": {"total_size": len(data)}, "weight_map": names}, f)
    else:
        sys.exit(f"damage.py: no kind named {kind}")


if __name__ == "__main__":
    main()
