#!/usr/bin/env python3
"""parity_tokenizer.py TOKENIZE [--seed N] [--texts N] [--sweep] [FILE|DIRECTORY...]

Random texts (fixtures/tokenizer_texts.py) through tokenize.c and through HuggingFace's `tokenizers`, which must
be installed: the ids must be equal, token for token. Without files: those of fixtures/tokenizers and qwen2-trained.
--sweep: every code point there is, beside letters, digits, blanks and added tokens, and sequences of every mark.
"""

import argparse
import os
import random
import sys
import unicodedata

from tokenizers import Tokenizer

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures")
sys.path.insert(0, FIXTURES)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from tokenizer_texts import Texts  # noqa: E402
from tokenizer_program import encode  # noqa: E402

CHUNK = 20000


def random_texts(seed, n):
    source = Texts(seed)
    return (source.any_text() for _ in range(n))


def sweep():
    """Every code point: where it is a letter, a mark, a digit, white space, part of a word, composed; then marks."""
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for c in points:
        yield f"a{c}b {c}{c} 1{c}2 \n{c}\n!{c}  {c}'{c}"
        yield f"{c}foo{c} foo{c} {c}foo{c}<mask>{c}<tool>{c}"
    r = random.Random(1)
    marks = [c for c in points if unicodedata.category(c).startswith("M")] + [chr(c) for c in range(0x1E000, 0x1E6FF)]
    composed = [unicodedata.normalize("NFD", c) for c in points if unicodedata.normalize("NFD", c) != c]
    composed = [c for c in composed if len(c) < 4]
    for m in marks:
        for _ in range(40):
            yield "".join([r.choice(composed)[0], *r.sample([m, *r.choices(marks, k=2), r.choice(composed)[-1]], 4)])
    for c in composed:
        yield c + "\u0323" + c[::-1] + c[0] + "".join(r.choices(marks, k=3)) + c[1:]


def compare(program, path, texts):
    """How many texts there were, and how many gave other ids."""
    theirs = Tokenizer.from_file(os.path.join(path, "tokenizer.json") if os.path.isdir(path) else path)
    total = differ = 0
    chunk = []

    def one_chunk():
        nonlocal total, differ
        wanted = [" ".join(map(str, e.ids)) for e in theirs.encode_batch(chunk)]
        for text, want, have in zip(chunk, wanted, encode(program, path, [t.encode() for t in chunk])):
            total += 1
            if want != have:
                differ += 1
                if differ <= 5:
                    print(f"  {text!r} {' '.join(f'{ord(c):04X}' for c in text[:12])}\n  theirs {want}\n"
                          f"  ours   {have}")
        chunk.clear()

    for text in texts:
        chunk.append(text)
        if len(chunk) == CHUNK:
            one_chunk()
    one_chunk()
    return total, differ


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("files", nargs="*")
    p.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    p.add_argument("--texts", type=int, default=20000)
    p.add_argument("--sweep", action="store_true")
    a = p.parse_intermixed_args()
    files = a.files or [os.path.join(FIXTURES, "tokenizers", n + ".json")
                        for n in ("gpt2", "qwen2", "qwen35", "llama3")] + [os.path.join(FIXTURES, "qwen2-trained")]
    bad = 0
    for path in files:
        total, differ = compare(a.program, path, sweep() if a.sweep else random_texts(a.seed, a.texts))
        print(f"{os.path.basename(path)}: {'sweep' if a.sweep else f'seed {a.seed}'}: {total} texts, {differ} differ",
              flush=True)
        bad += differ
    sys.exit(1 if bad else 0)


main()
