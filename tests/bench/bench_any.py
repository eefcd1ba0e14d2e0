#!/usr/bin/env python3
"""bench_any.py VERNIER [--layers 24] [--width 512] [--tokens 256] [--arch StableLm]

What a verdict on any PyTorch model costs, in its own forward passes in float32: `python -m vernier_parity explain` of a
bfloat16 recording (reference, floor, replay, comparison, report), and what recording costs beside the bare pass and the
plain write of as many bytes. One process, so that importing torch does not count; processor time, with children.
Goals: 12 passes; recorded at most 1.5 times (pass + write) at width 896, 4 layers, 512 tokens; a tiny model at most
20 ms more. Exit status 1 where one is missed; 77, skipped, in a Python without transformers.
"""
import argparse
import contextlib
import io
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "parity"))
from needs_transformers import torch, transformers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "capture", "python"))
import vernier_parity
from vernier_parity.__main__ import main as package

PASSES, RECORDED, TINY_MS = 12.0, 1.5, 20.0


def made(arch, directory, layers, width):
    """A random model of a class that has no reference in C, saved in a directory."""
    torch.manual_seed(1)
    heads = max(width // 64, 2)
    config = getattr(transformers, arch + "Config")(
        hidden_size=width, intermediate_size=3 * width, num_hidden_layers=layers, num_attention_heads=heads,
        num_key_value_heads=heads, vocab_size=1000, max_position_embeddings=2048)
    model = getattr(transformers, arch + "ForCausalLM")(config).eval()
    model.save_pretrained(directory)
    return model


def processor():
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def cost(f, repeat):
    """The least (seconds of the processor, of the clock) of several runs."""
    taken = []
    for _ in range(repeat):
        start = processor(), time.perf_counter()
        f()
        taken.append((processor() - start[0], time.perf_counter() - start[1]))
    return tuple(min(column) for column in zip(*taken))


def recorded(model, ids, path):
    with vernier_parity.record(model, path, force=True):
        model(ids)


def plain_write(data, path):
    with open(path, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())


def recording(arch, tmp, layers, width, tokens):
    """(recorded, bare pass, write of as many bytes): least seconds of the clock."""
    model = made(arch, os.path.join(tmp, "record"), layers, width)
    ids = torch.randint(0, 1000, (1, tokens))
    path = os.path.join(tmp, "recorded.h5")
    recorded(model, ids, path)
    data = os.urandom(os.path.getsize(path))
    with torch.no_grad():
        bare, with_it, write = (cost(f, 5)[1] for f in (
            lambda: model(ids), lambda: recorded(model, ids, path), lambda: plain_write(data, path + ".plain")))
    return with_it, bare, write


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    args.add_argument("vernier")
    args.add_argument("--layers", type=int, default=24)
    args.add_argument("--width", type=int, default=512)
    args.add_argument("--tokens", type=int, default=256)
    args.add_argument("--arch", default="StableLm")
    o = args.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    missed = False
    with tempfile.TemporaryDirectory() as tmp:
        directory, cand = os.path.join(tmp, "model"), os.path.join(tmp, "cand.h5")
        model = made(o.arch, directory, o.layers, o.width)
        ids = torch.randint(0, 1000, (1, o.tokens))
        with torch.no_grad():
            model(ids)
            bare = cost(lambda: model(ids), 5)
            coarse = type(model).from_pretrained(directory, dtype=torch.bfloat16).eval()
            recorded(coarse, ids, cand)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = []
            whole = cost(lambda: status.append(package(
                ["explain", directory, cand, "-o", os.path.join(tmp, "report.html"), "--vernier", o.vernier])), 1)
        if status != [0]:
            sys.exit(f"explain of a right run: status {status[0]}\n{said.getvalue()}")
        passes = whole[0] / bare[0]
        missed |= passes > PASSES
        print(f"explain   {o.layers} layers, width {o.width}, {o.tokens} tokens: {passes:.1f} passes of "
              f"{bare[0] * 1e3:.0f} ms of the processor (goal {PASSES:.0f}); clock {whole[1]:.1f} s")
        for layers, width, tokens in ((4, 896, 512), (2, 64, 24)):
            with_it, bare_pass, write = recording(o.arch, tmp, layers, width, tokens)
            ratio, more = with_it / (bare_pass + write), (with_it - bare_pass - write) * 1e3
            missed |= more > TINY_MS if width < 100 else ratio > RECORDED
            print(f"recorded  {layers} layers, width {width}, {tokens} tokens: {ratio:.2f} times pass + write "
                  f"({bare_pass * 1e3:.1f} + {write * 1e3:.1f} ms), {more:.1f} ms more")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
