#!/usr/bin/python3
"""golden_tokenizers.py TOKENIZE: the ids of fixtures/tokenizers, token for token those of HuggingFace's `tokenizers`.

TOKENIZE is the program of tokenize.c. Each tokenizer there, qwen2-trained and every variant
(fixtures/tokenizer_variants.py) encodes the texts; so do the GPT-2, Qwen2 and Qwen3.5 ones given as vocab.json
and merges.txt, and all of them given as GGUF files. Needs Python's own library alone. Without it (lzma) status 77.
"""

import json
import os
import struct
import sys
import tempfile

try:
    import lzma
except ImportError:
    sys.exit(77)

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures")
HERE = os.path.join(FIXTURES, "tokenizers")
sys.path.insert(0, FIXTURES)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from tokenizer_program import encode  # noqa: E402
from tokenizer_variants import VARIANTS  # noqa: E402


def golden(name):
    with lzma.open(os.path.join(HERE, name + ".ids.xz")) as f:
        data = f.read()
    at = 0
    while at < len(data):
        (n,) = struct.unpack_from("<H", data, at)
        yield list(struct.unpack_from(f"<{n}H", data, at + 2))
        at += 2 + 2 * n


def check(program, label, tokenizer, texts, wanted):
    wanted = list(wanted)
    found = encode(program, tokenizer, texts[: len(wanted)])
    wrong = [i for i, ids in enumerate(wanted) if found[i] != " ".join(map(str, ids))]
    print(f"{label}: {len(wanted)} texts, {sum(map(len, wanted))} tokens, {len(wrong)} texts differ")
    for i in wrong[:3]:
        print(f"  text {i}: {texts[i].decode()!r}\n  golden {' '.join(map(str, wanted[i]))}\n  found  {found[i]}")
    return not wrong


def as_older_files(o, directory, tokenizer_class):
    """The same as vocab.json, merges.txt and tokenizer_config.json."""
    os.mkdir(directory)
    merges = [m if isinstance(m, str) else " ".join(m) for m in o["model"]["merges"]]
    with open(os.path.join(directory, "vocab.json"), "w", encoding="utf-8") as f:
        json.dump(o["model"]["vocab"], f)
    with open(os.path.join(directory, "merges.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(["#version: 0.2"] + merges + [""]))
    added = {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in o["added_tokens"]}
    with open(os.path.join(directory, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump({"tokenizer_class": tokenizer_class, "added_tokens_decoder": added, "add_prefix_space": False}, f)


PRE = {"gpt2": "gpt-2", "qwen2": "qwen2", "qwen35": "qwen35", "llama3": "llama-bpe"}


def as_gguf(o, path, pre):
    """The same as the metadata of a GGUF file without tensors, byte by byte (specs/models.md, "GGUF")."""
    STRING, ARRAY, I32, U32 = 8, 9, 5, 4

    def text(s):
        return struct.pack("<Q", len(s.encode())) + s.encode()

    def strings(key, words):
        return text(key) + struct.pack("<IIQ", ARRAY, STRING, len(words)) + b"".join(map(text, words))

    added = {t["id"]: t for t in o["added_tokens"]}
    tokens = {**{i: t for t, i in o["model"]["vocab"].items()}, **{i: t["content"] for i, t in added.items()}}
    types = [3 if i in added and added[i]["special"] else 4 if i in added else 1 for i in range(len(tokens))]
    merges = [m if isinstance(m, str) else " ".join(m) for m in o["model"]["merges"]]
    keys = [
        text("tokenizer.ggml.model") + struct.pack("<I", STRING) + text("gpt2"),
        text("tokenizer.ggml.pre") + struct.pack("<I", STRING) + text(pre),
        strings("tokenizer.ggml.tokens", [tokens[i] for i in range(len(tokens))]),
        text("tokenizer.ggml.token_type") + struct.pack(f"<IIQ{len(types)}i", ARRAY, I32, len(types), *types),
        strings("tokenizer.ggml.merges", merges),
        text("tokenizer.ggml.bos_token_id") + struct.pack("<II", U32, o["added_tokens"][0]["id"]),
    ]
    with open(path, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys))


def main():
    program = sys.argv[1]
    with lzma.open(os.path.join(HERE, "texts.json.xz")) as f:
        texts = [t.encode() for t in json.load(f)]
    good = True
    with tempfile.TemporaryDirectory() as work:
        for name in ("gpt2", "qwen2", "qwen35", "llama3"):
            good &= check(program, name, os.path.join(HERE, name + ".json"), texts, golden(name))
        good &= check(program, "qwen2-trained", os.path.join(FIXTURES, "qwen2-trained"), texts, golden("qwen2-trained"))
        made = {name: json.load(open(os.path.join(HERE, name + ".json"), encoding="utf-8")) for name in
                {base for base, _ in VARIANTS.values()}}
        for name, (base, change) in VARIANTS.items():
            path = os.path.join(work, name + ".json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(change(json.loads(json.dumps(made[base]))), f)
            good &= check(program, "variant " + name, path, texts, golden("variant-" + name))
        for name, kind in (("gpt2", "GPT2Tokenizer"), ("qwen2", "Qwen2TokenizerFast"), ("qwen35", "Qwen3_5Tokenizer")):
            as_older_files(made[name], os.path.join(work, name), kind)
            good &= check(program, f"{name} as vocab.json and merges.txt", os.path.join(work, name), texts,
                          golden(name))
        for name, pre in PRE.items():
            path = os.path.join(work, name + ".gguf")
            as_gguf(VARIANTS["gguf-" + name][1](json.loads(json.dumps(made[name]))), path, pre)
            good &= check(program, f"{name} as a GGUF file", path, texts, golden("variant-gguf-" + name))
        good &= check(program, "qwen2-trained's GGUF twin", os.path.join(FIXTURES, "gguf", "qwen2-trained.f32.gguf"),
                      texts,
                      golden("qwen2-trained"))
    print("1 passed, 0 failed" if good else "0 passed, 1 failed")
    sys.exit(0 if good else 1)


main()
