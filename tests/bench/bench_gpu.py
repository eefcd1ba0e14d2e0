#!/usr/bin/env python3
"""bench_gpu.py BUILD MODEL [TOKENS...] [--torch PYTHON] [--precision f16] [--repeat 5] [--json FILE]

One table for each number of tokens, and for one token after them: the time of each operation of `capture gpu` on the
device, its GB/s and TFLOP/s, its share of the device's limit, and torch beside it. Each number is the least of the
repeats.

The limits are measured in the same run, by what reaches most: copies and products of torch (--torch names its Python)
and our own largest products. A share is the time that the operation's bytes need at the limit of memory, or its
arithmetic at that of products, whichever is longer, in hundredths of the time that it took. It can exceed 100 where
operands are in the device's cache. A command that computes several operations is a row of the first one, with the bytes
and the arithmetic of all and the time that torch takes for all; the table names the others.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS = 128, 512, 2048


class Missing(Exception):
    """Why something cannot be measured here."""


def last_line(text, otherwise):
    return (text.strip().splitlines() or [otherwise])[-1]


UNTIL = math.inf  # the time of time.monotonic() at which programs are ended (bench.py --within)


def run(command, cwd=None):
    """Runs a program; Missing: it cannot be started, or the time is up."""
    left = UNTIL - time.monotonic()
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd,
                              timeout=max(left, 1e-3) if math.isfinite(left) else None)
    except OSError as e:
        raise Missing(f"{command[0]}: {e.strerror}")
    except subprocess.TimeoutExpired:
        raise Missing(f"{os.path.basename(command[0])}: the time of --within was up")


def said(command, cwd=None):
    """The JSON that a program prints."""
    out = run(command, cwd)
    if out.returncode:
        raise Missing(last_line(out.stderr, f"{command[0]}: status {out.returncode}"))
    return json.loads(out.stdout)


def tool(build, name):
    return os.path.abspath(os.path.join(build, "tests", name))


def device(build, software=False):
    """Raises Missing unless there is a hardware device, whose speed is meaningful."""
    try:
        out = subprocess.run([os.path.join(build, "compare", "vernier"), "devices"], capture_output=True, text=True)
    except OSError as e:
        raise Missing(str(e))
    kinds = [line.split()[1] for line in out.stdout.splitlines() if line.split()[:1] == ["type"]]
    if not kinds:
        raise Missing(last_line(out.stderr or out.stdout, "no Vulkan device"))
    if set(kinds) == {"cpu"} and not software:
        raise Missing("only a software device here, which says nothing of speed")
    return kinds


def engine(build, model, precision, repeat, tokens):
    return said([tool(build, "bench_gpu"), "--json", model, precision, str(repeat), *map(str, tokens)])


def torch(python, model, what, precision, repeat, tokens, device="cuda", *more):
    if not python:
        raise Missing("no --torch PYTHON")
    return said([python, os.path.join(HERE, "bench_torch.py"), model, "--what", what, "--precision", precision,
                 "--repeat", str(repeat),
                 "--tokens", ",".join(map(str, tokens)), "--device", device, *more])


def own_limits(build, precision):
    """GB/s and TFLOP/s of our largest products."""
    out = subprocess.run([tool(build, "bench_products"), "--json", precision, "best", "1", "2048"], capture_output=True,
                         text=True)
    if out.returncode:
        raise Missing(last_line(out.stderr, "bench_products failed"))
    rows = [json.loads(line) for line in out.stdout.splitlines()[1:]]
    vector = max((row for row in rows if row["tokens"] == 1), key=lambda row: row["bytes"] / row["us"])
    matrix = max((row for row in rows if row["tokens"] > 1), key=lambda row: row["flops"] / row["us"])
    return ((vector["bytes"] / vector["us"] * 1e-3,
             f"our product of one token, {vector['inputs']} x {vector['outputs']}"),
            (matrix["flops"] / matrix["us"] * 1e-6,
             f"our product of {matrix['tokens']} tokens, {matrix['inputs']} x {matrix['outputs']}"))


def limits(build, precision, of_torch, software):
    """The largest GB/s and TFLOP/s that anything reached, with what did; empty where nothing was measured."""
    found = [] if software else [own_limits(build, precision)]
    if of_torch:
        said = of_torch["limits"]
        found.append(((said["gb_s"], f"torch copies {said['copied_gb']:.1f} GB"),
                      (said["tflop_s"], f"torch.matmul of {said['matmul']} x {said['matmul']}")))
    return {what: max(pair[i] for pair in found) for i, what in enumerate(("GB/s", "TFLOP/s")) if found}


def share(row, ms, limit):
    """Hundredths of the limit, and which."""
    if not limit or not ms:
        return None, ""
    bound = {"memory": row["bytes"] * 1e-6 / limit["GB/s"][0], "products": row["flops"] * 1e-9 / limit["TFLOP/s"][0]}
    which = max(bound, key=bound.get)
    return 100 * bound[which] / ms, which


def operations(call, of_torch, limit):
    """The rows of one call."""
    peers = {row["operation"]: row for row in (of_torch or {}).get("operations", ())
             if (row["tokens"], row["behind"]) == (call["tokens"], call["behind"])}
    nodes = {row["operation"]: row["nodes"] for row in call["operations"]}
    for row in call["operations"]:
        ms, computes = min(row["ms"]) if row["computes"] else None, row["computes"]
        parts = [(peers.get(name, {}), n / nodes[name]) for name, n in computes.items()]
        theirs = sum(min(peer["ms"]) * part for peer,
                     part in parts) if parts and all("ms" in peer for peer, _ in parts) else None
        percent, which = share(row, ms, limit)
        yield {"operation": row["operation"], "ms": ms, "GB/s": row["bytes"] / ms * 1e-6 if ms else None,
               "TFLOP/s": row["flops"] / ms * 1e-9 if ms and row["flops"] else None, "percent": percent, "limit": which,
               "torch_ms": theirs, "ratio": ms / theirs if theirs else None, "computes": computes,
               "why": next((peer["why"] for peer, _ in parts if "why" in peer), None)}


def cell(x, form, width):
    return f"{'-' if x is None else format(x, form):>{width}}"


def note(row, rows):
    """Which operations a row includes, or which rows include it; why torch has none."""
    name = row["operation"]
    others = [f"with {other}" for other in row["computes"] if other != name]
    others += [f"{'the rest ' if row['computes'] else ''}in {other['operation']}" for other in rows if other is not row
               and name in other["computes"]]
    return ", ".join(others + [row["why"]] * bool(row["why"]))


def table(call, rows, precision):
    tokens, behind = call["tokens"], call["behind"]
    print(f"\n{tokens} token{'s' * (tokens > 1)}{f' behind {behind}' if behind else ''}, {precision}: "
          f"{min(call['device_ms']):.3f} ms on the device, {min(call['wall_ms']):.3f} ms by the clock")
    print(f"  {'operation':12} {'ms':>8} {'GB/s':>8} {'TFLOP/s':>8} {'of the limit':>18} {'torch, ms':>10} "
          f"{'times torch':>12}")
    for row in rows:
        of = "-" if row["percent"] is None else f"{row['percent']:.0f} % ({row['limit']})"
        print(f"  {row['operation']:12} {cell(row['ms'], '.3f', 8)} {cell(row['GB/s'], '.1f', 8)} "
              f"{cell(row['TFLOP/s'], '.1f', 8)} {of:>18} "
              f"{cell(row['torch_ms'], '.3f', 10)} {cell(row['ratio'], '.2f', 12)}  {note(row, rows)}".rstrip())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("model")
    p.add_argument("tokens", type=int, nargs="*", default=list(TOKENS))
    p.add_argument("--torch", metavar="PYTHON")
    p.add_argument("--precision", default="f16", choices=("f16", "f32"))
    p.add_argument("--repeat", type=int, default=5)
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--software", action="store_true", help="take a software device, too: a test of this program")
    o = p.parse_args()
    try:
        software = set(device(o.build, o.software)) == {"cpu"}
        ours = engine(o.build, o.model, o.precision, o.repeat, o.tokens)
    except Missing as e:
        print(f"bench_gpu.py: not measured: {e}", file=sys.stderr)
        return 77
    try:
        theirs = torch(o.torch, o.model, "operations,limits", o.precision, o.repeat, o.tokens,
                       "cpu" if software else "cuda")
        other = "" if software or theirs["device"] == ours["device"] else ", which is ANOTHER DEVICE"
        print(f"torch {theirs['torch']} on {theirs['device']}{other}")
    except Missing as e:
        theirs = None
        print(f"torch: not measured: {e}")
    limit = limits(o.build, o.precision, theirs, software)
    print(f"{o.model} on {ours['device']}; loaded in {ours['created_s']:.2f} s")
    for what, (rate, by) in limit.items():
        print(f"limit: {rate:,.4g} {what} ({by})")
    result = {"device": ours["device"], "precision": o.precision, "model": o.model,
              "torch": theirs and {k: theirs[k] for k in ("torch", "device")},
              "limits": {what: {"rate": rate, "by": by} for what, (rate, by) in limit.items()}, "calls": []}
    for call in ours["calls"]:
        rows = list(operations(call, theirs, limit))
        table(call, rows, o.precision)
        result["calls"].append({"tokens": call["tokens"], "behind": call["behind"], "device_ms": min(call["device_ms"]),
                                "wall_ms": min(call["wall_ms"]), "operations": rows})
    if o.json:
        with open(o.json, "w") as f:
            json.dump(result, f, indent=1)
            f.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
