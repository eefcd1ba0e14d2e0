#!/usr/bin/env python3
"""parity_precision.py: transformers in bfloat16 and float16, in units of what the format alone explains.

    parity_precision.py VERNIER [--short] [--dtype bf16|f16]... [--family F]...

Needs a Python with torch, transformers and what else fixtures/requirements.txt names (77, skipped, without). Runs the
trained models through transformers as from_pretrained(dtype=...) gives them, and prints how many floors each is off:
NMSE against the float32 reference over the NMSE of the reference run in that format, of the worst checkpoint and of its
worst token. `vernier compare` must find them within its own limits. Then what model.to(bfloat16) does, which rounds the
frequencies of RoPE too: where that rotates the last token by 0.01 radians or more it must be outside, and start at a
rotated query or key. (Frequencies 1, 1/200, 1/5000 of llama and those of Qwen3.5 are rounded by too little for 200
tokens.) --short: of each family, one prompt per format.
"""
import argparse
import contextlib
import io
import os
import subprocess
import sys
import tempfile

from needs_transformers import golden, torch, transformers  # first: it finds what is in fixtures/
import numpy as np
from parity_gpu import nmse, over, worst_token
from parity_hf import FAMILIES, FIXTURES, record, tensors

PROMPTS = ("p017", "p200")  # inside one chunk of 64 tokens and window, and beyond


def numbers(found):
    """name -> float64, of tensors in any format."""
    bf16 = lambda d: d.attrs.get("dtype") in (b"bf16", "bf16")
    widened = lambda d: (d[()].astype("<u4") << 16).view("<f4") if bf16(d) else d[()]
    return {name: widened(d).astype(np.float64) for name, d in found.items()}


def golden_run(*args, **options):
    with contextlib.redirect_stderr(io.StringIO()):  # it says what it writes
        golden.record(*args, **options)
    return numbers(tensors(args[-1]))


def ratios(run, ref, low, axes):
    """name -> (NMSE, NMSE of the worst token) over the floor's."""
    return {name: [over(m(x), m(low[name]))
                   for m in (lambda a: nmse(a, ref[name]), lambda a: worst_token(a, ref[name], axes[name]))]
            for name, x in run.items()}


def judged(vernier, ref, cand, floor):
    """(exit status, first divergence) of `vernier compare`."""
    run = subprocess.run([vernier, "compare", ref, cand, "--floor", floor, "--allow", "missing,extra"],
                         capture_output=True, text=True,
                         check=False)
    first = [line.split()[1] for line in run.stdout.splitlines() if line.startswith("first ")]
    return run.returncode, first[0] if first else None, run.stderr


def largest(found, which):
    name = max(found, key=lambda n: found[n][which])
    return found[name][which], name


def rotated_by(model, tokens):
    """How far the last token is rotated by rounding the frequencies, in radians."""
    exact, rounded = (golden.load(model, "bf16", cast).model.rotary_emb.inv_freq.double() for cast in (False, True))
    return float((rounded - exact).abs().max()) * (tokens - 1)


def cast(vernier, family, prompt, model, ids, at, runs):
    """model.to(bfloat16), where that rotates anything by more than a few roundings."""
    found = ratios(golden_run(model, ids, "bf16", at("cast"), cast=True), *runs)
    roped = [n for n in found if n.endswith("_rope")]
    first = [found[n][0] for n in roped if n.split(".")[0] == roped[0].split(".")[0]]
    angle = rotated_by(model, len(golden.read_ids(ids)))
    status, begins, said = judged(vernier, at("f32"), at("cast"), at("bf16"))
    found_out = status == 1 and begins in roped
    good = found_out == (angle > 0.01)
    print(f"{family} {prompt} bf16, frequencies cast: rotated by {angle:.4f} rad, rotated queries and keys of "
          f"{roped[0].split('.')[0]} "
          f"{min(first):.1f} to {max(first):.1f} floors; "
          f"{f'starts at {begins}' if found_out else f'within {said}' if status == 0 else begins}"
          f"{'' if good else '   FAILED'}")
    return good


def run(vernier, family, dtype, prompt, folder):
    model, ids = os.path.join(FIXTURES, family + "-trained"), "@" + os.path.join(FIXTURES, "prompts", prompt + ".ids")
    at = lambda name: os.path.join(folder, f"{family}.{prompt}.{dtype}.{name}.h5")
    exact, floor = (record(vernier, model, ids, p, at(p)) for p in ("f32", dtype))
    axes = {name: str(d.attrs["axes"]).split() for name, d in exact.items()}
    ref, low = numbers(exact), numbers(floor)
    found = ratios(golden_run(model, ids, dtype, at("hf")), ref, low, axes)
    status, first, said = judged(vernier, at("f32"), at("hf"), at(dtype))
    good = status == 0
    (whole, a), (token, b) = largest(found, 0), largest(found, 1)
    print(f"{family} {prompt} {dtype}: nmse {whole:.1f} floors ({a}), worst token {token:.1f} ({b}); "
          f"{'within' if good else f'FAILED: {first} {said}'}")
    if dtype == "bf16" and family != "gpt2":
        good &= cast(vernier, family, prompt, model, ids, at, (ref, low, axes))
    return good, whole, token


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("vernier")
    a.add_argument("--short", action="store_true")
    a.add_argument("--dtype", action="append", choices=sorted(golden.HALVES))
    a.add_argument("--family", action="append", choices=FAMILIES)
    a = a.parse_args()

    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for k, dtype in enumerate(a.dtype or sorted(golden.HALVES)):
            runs = [run(a.vernier, f, dtype, p, folder) for n, f in enumerate(a.family or FAMILIES)
                    for i, p in enumerate(PROMPTS) if not a.short or (n + k + i) % len(PROMPTS) == 0]
            good &= all(r[0] for r in runs)
            print(f"{dtype}: at most {max(r[1] for r in runs):.1f} floors in nmse, {max(r[2] for r in runs):.1f} in "
                  f"single tokens")
    print(f"{'1 passed, 0 failed' if good else '0 passed, 1 failed'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
