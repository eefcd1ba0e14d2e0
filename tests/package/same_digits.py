#!/usr/bin/env python3
"""same_digits.py VERNIER OTHER [--bits] [MODEL...]: two builds of vernier agree.

Of each model of fixtures/, both record the reference, a run in f16 and one with a mistake, compare,
explain and show these, and import a dump. OTHER may have words before its path, such as
'qemu-aarch64-static -L ROOT PATH'. Needs no module but Python's own.

--bits: all recordings and all printed numbers are the same. Otherwise processors may sum in another
order: references and imports agree within fp32.yaml, and the printed numbers are compared.
"""
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
# Of the machine, of the time, or of the build.
OWN = re.compile(r"^ +(created|blas|blas_kernel|threads) |^\S+: \d+ tensors, .* in [\d.]+ s|"
                 r"^vernier: note: the sandbox")


def write_npy(path, shape, values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
                     struct.pack(f"<{len(values)}f", *values))


def dump_into(folder):
    """Tensors whose numbers are made without any library: exact in binary."""
    folder.mkdir(parents=True)
    for layer in range(2):
        for name, width in (("attn_norm", 48), ("mlp_norm", 48)):
            values = [((i * 37 + layer * 11 + width) % 251 - 125) / 64 for i in range(4 * width)]
            write_npy(folder / f"layer{layer}.{name}.npy", (4, width), values)


def run(program, folder, *words):
    done = subprocess.run([*program, *words], cwd=folder, capture_output=True, text=True, check=False,
                          env={"PATH": "/usr/bin:/bin", "NO_COLOR": "1", "LC_ALL": "C", "OMP_WAIT_POLICY": "passive",
                               "VERNIER_SPECS": str(ROOT / "specs")})  # of which they print paths
    text = "".join(line + "\n" for line in (done.stdout + done.stderr).split("\n") if not OWN.search(line))
    return f"{text}[{done.returncode}]\n"


def commands(model, ids):
    mistake = "R2.1e4@layer1.*" if model.name.startswith("qwen2") else "A1@*"
    return [
        ("capture", "ref", str(model), "--ids", ids, "-o", "ref.h5"),
        ("capture", "ref", str(model), "--ids-from", "ref.h5", "--precision", "f16", "-o", "good.h5"),
        ("capture", "ref", str(model), "--ids-from", "ref.h5", "--precision", "f16", "--inject", mistake, "-o",
         "bad.h5"),
        ("compare", "ref.h5", "good.h5", "--model", str(model), "--all"),
        ("compare", "ref.h5", "bad.h5", "--model", str(model)),
        ("explain", "ref.h5", "bad.h5", "--model", str(model)),
        ("show", "ref.h5"), ("show", "ref.h5", "logits"),
        ("import", "dump", "--ids", "5,6,7,8", "--engine", "other", "--precision", "f32", "-o", "own.h5"),
        ("show", "own.h5", "layer1.mlp_norm"),
    ]


class Difference:
    """Of two reports: None in .words if they say the same; and the numbers that differ."""

    def __init__(self):
        self.words, self.numbers, self.worst, self.all = None, 0, (0.0, ""), 0

    def add(self, mine, other, of):
        if NUMBER.sub("#", mine).split() != NUMBER.sub("#", other).split():
            lines = [(a, b) for a, b in zip(mine.split("\n"), other.split("\n"))
                     if NUMBER.sub("#", a).split() != NUMBER.sub("#", b).split()]
            self.words = self.words or (of, *(lines or [(mine[-200:], other[-200:])])[0])
            return
        for a, b in zip(mine.split("\n"), other.split("\n")):
            for x, y in zip(NUMBER.findall(a), NUMBER.findall(b)):
                self.all += 1
                if x != y:
                    self.numbers += 1
                    by = abs(float(x) - float(y)) / max(abs(float(x)), abs(float(y)))
                    self.worst = max(self.worst, (by, f"{of}: {x} against {y} in '{a.strip()[:100]}'"))


def main():
    words = [w for w in sys.argv[1:] if w != "--bits"]
    if len(words) < 2:
        sys.exit(__doc__)
    mine, other, bits = shlex.split(words[0]), shlex.split(words[1]), "--bits" in sys.argv
    ids, bad, total = "@" + str(ROOT / "fixtures/prompts/p017.ids"), [], Difference()
    models = [ROOT / "fixtures" / w for w in words[2:]] or sorted((ROOT / "fixtures").glob("*-trained"))
    for model in models:
        own = Difference()
        with tempfile.TemporaryDirectory() as work:
            a, b = Path(work, "a"), Path(work, "b")
            for folder in (a, b):
                dump_into(folder / "dump")
            for words in commands(model, ids):
                said = [run(mine, a, *words), run(other, b, *words)]
                of = f"{model.name}: {' '.join(w for w in words[:3] if not w.startswith('/'))}"
                if words[0] in ("capture", "import") and not all(text.endswith("[0]\n") for text in said):
                    sys.exit(f"{of}: {said[0]}{said[1]}")
                own.add(*said, of)
            worst = 0.0
            for name in ("ref.h5", "good.h5", "bad.h5", "own.h5"):
                how = ["--bitwise"] if bits or name == "own.h5" else ["--limits", "fp32.yaml"]
                same = run(mine, work, "compare", f"a/{name}", f"b/{name}", "--all", *how)
                if not same.endswith("[0]\n") and (bits or name in ("ref.h5", "own.h5")):
                    bad.append(f"{model.name}: {name}: {same}")
                if name == "ref.h5" and not bits:
                    worst = max([float(x) for x in re.findall(r"^within +[a-z]\S+ +(\d\S+)", same, re.M)] or [0.0])
        if own.words:
            bad.append("{}\n  {}\n  {}".format(*own.words))
        print(f"{model.name:22} {own.all} numbers printed, {own.numbers} differ, the largest by {own.worst[0]:.1g}"
              + ("" if bits else f"; the reference: nmse {worst:.1g} at most"), flush=True)
        total.numbers += own.numbers
        total.all += own.all
        total.worst = max(total.worst, own.worst)
    if total.numbers:
        print(f"the largest difference: {total.worst[1]}")
    if bits and total.numbers:
        bad.append(total.worst[1])
    for text in bad:
        print(f"same_digits: {text}", file=sys.stderr)
    print(f"same_digits: {len(models)} models, {total.all} numbers, {total.numbers} differ")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
