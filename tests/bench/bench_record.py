#!/usr/bin/env python3
"""bench_record.py VERNIER [--model DIR] [--tokens 128,512] [--repeat N] [--dtype f32|bf16|f16] [--decode N]

What vernier_parity.record() costs: the forward pass of a HuggingFace model bare, the same recorded at every default
point, and the plain write of as many bytes to the same folder (with fsync, as a recording ends), in turn, the fastest
of each. The goal: recorded, less the write, takes at most 1.3 times the bare pass, of the clock, and where the machine
is busy of the processor's time, which others touch less. The model is that of `vernier synth qwen2-0.5b`; one thread of
torch both times. The table of weights is made once a file, whatever its tokens; its time is printed beside. Exit status
1 where the goal is missed; 77, skipped, in a Python without transformers.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "parity"))
from needs_transformers import torch, transformers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "capture", "python"))
import vernier_parity

GOAL = 1.3
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def timed(f):
    """(seconds of the clock, of the processor)."""
    start = time.perf_counter(), time.process_time()
    f()
    return time.perf_counter() - start[0], time.process_time() - start[1]


def busy():
    """What else runs here, in words; empty when hardly anything does."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    return (f"the machine is busy (load {load:.1f} on {cores} processors): the clock says little" if load > 0.3 * cores
            else "")


def plain_write(path, sizes):
    """Writes as many bytes, with a write(2) for each tensor and none of them twice: bytes that are in a cache already
    are written faster."""
    data, at = memoryview(bytearray(os.urandom(1 << 20)) * (sum(sizes) // (1 << 20) + 1)), 0
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    def write():
        nonlocal at
        for n in sizes:
            end = at + n
            while at < end:
                at += os.write(fd, data[at:end])
        os.fsync(fd)

    took = timed(write)
    os.close(fd)
    return took


def measure(model, tokens, repeat, folder, crowd):
    """Whether the goal is reached."""
    out, other = os.path.join(folder, "rec.h5"), os.path.join(folder, "plain")
    ids = torch.arange(tokens)[None] * 7919 % 50000
    bare, recorded, plain, sizes = [], [], [], []

    def watched():
        with vernier_parity.record(model, out, weights=False, force=True):
            model(ids)

    with torch.no_grad():
        model(ids)
        for _ in range(repeat):
            bare.append(timed(lambda: model(ids)))
            recorded.append(timed(watched))
            if not sizes:
                with vernier_parity.open(out) as r:
                    sizes = [r._dataset(n).nbytes for n in r.names() if not n.endswith(".input")]
            plain.append(plain_write(other, sizes))
            os.unlink(other)
            os.unlink(out)
    clock, processor = ([min(x[i] for x in runs) for runs in (bare, recorded, plain)] for i in (0, 1))
    ratios = [(b - c) / a for a, b, c in (clock, processor)]
    reached = ratios[bool(crowd)] <= GOAL
    print(f"{'reached' if reached else 'MISSED':8} {tokens} tokens, {len(sizes)} tensors, {sum(sizes) / 1e6:.0f} MB: "
          f"recorded less write is "
          f"{ratios[0]:.3f} times the bare pass by the clock, {ratios[1]:.3f} by the processor's time")
    for what, (a, b, c) in (("clock", clock), ("processor", processor)):
        print(f"           {what:9} bare {a:7.3f} s   recorded {b:7.3f} s   plain write {c:6.3f} s", flush=True)
    return reached


def decoding(model, n, folder):
    """The additional time of a token in generate."""
    ids, out = torch.arange(17)[None], os.path.join(folder, "rec.h5")
    step = lambda: model.generate(ids, max_new_tokens=n, do_sample=False, eos_token_id=None, pad_token_id=0,
                                  attention_mask=torch.ones_like(ids))

    def watched():
        with vernier_parity.record(model, out, weights=False, force=True):
            step()

    step()
    a, b = timed(step)[0], timed(watched)[0]
    print(f"         generate, {n} tokens behind 17: bare {a / n * 1e3:.1f} ms a token, recorded {b / n * 1e3:.1f}")


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("vernier")
    a.add_argument("--model")
    a.add_argument("--tokens", default="128,512")
    a.add_argument("--repeat", type=int, default=3)
    a.add_argument("--dtype", choices=DTYPES, default="f32")
    a.add_argument("--decode", type=int, default=16)
    a = a.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    crowd = busy()
    with tempfile.TemporaryDirectory() as folder:
        where = a.model or os.path.join(folder, "model")
        if not a.model:
            subprocess.run([a.vernier, "synth", "qwen2-0.5b", "-o", where], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        model = transformers.AutoModelForCausalLM.from_pretrained(where, dtype=DTYPES[a.dtype]).eval()
        good = all([measure(model, int(t), a.repeat, folder, crowd) for t in a.tokens.split(",")])
        decoding(model, a.decode, folder)
        from vernier_parity import weights

        print(f"         table of weights: {timed(lambda: weights.of_memory(model, where))[0]:.2f} s, once a file")
    if crowd:
        print(crowd)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
