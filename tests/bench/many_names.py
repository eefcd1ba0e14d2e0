#!/usr/bin/env python3
"""many_names.py VERNIER [--all | --full [--steps N[,N]] [--folder DIR]]: time is linear in the number of names of one
step, of steps, and of layers.

Imports dumps of n and of 4n tensors (a .safetensors file, a .npz file, a directory with a manifest), writes as many
through vernier_capture.h, shows and compares what comes of them, and holds the seconds of processor to at most 6 times
as many. 30,000 names in one step must pass. The comparison of 150 tensors in 100 steps takes at most 30 MB and 1,500
bytes a tensor, that of a model's 100,000 weights 30 MB and 750 bytes a weight; 1,200 where none has its name on the
other side. To look for the formats of 200 decoded steps takes at most 5 times as long as to explain them.

--all: also 1,000 and 10,000 tensors a step in 100 steps, with the seconds, the bytes and the peak memory of each
command; what --full does; and a file of links alone. Takes an hour and a half.

--full: 10,000 tensors in each of 1,000 steps alone, written through vernier_capture.h (the header of a .safetensors
file ends at 100 MB), shown, checked and compared: the time and the peak memory of each command. Says first how much
disk and memory that takes (10 GB, and 15 GB for the comparison), and leaves out what there is no room for; an hour.
--steps 20,50: so many steps instead; of two numbers, time and memory must be linear. --folder: where the recordings are
made and kept; what is there already is not made again.
"""
import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import numpy

import bench_linear

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "capture", "python"))
import vernier_parity

PARSER = argparse.ArgumentParser(description=__doc__.splitlines()[0])
PARSER.add_argument("vernier")
PARSER.add_argument("--all", action="store_true")
PARSER.add_argument("--full", action="store_true")
PARSER.add_argument("--steps", type=lambda text: [int(n) for n in text.split(",")], default=[1000])
PARSER.add_argument("--folder")
OPTIONS = PARSER.parse_args()
VERNIER = os.path.abspath(OPTIONS.vernier)
ALL = OPTIONS.all
TENSORS = 10000  # of a step of --full
BYTES_WRITTEN = 1000  # on disk, of one tensor of --full, at most
MOST = 6.0  # times as long for 4 times as many; what is quadratic takes 16 times as long
FEW = 1000 if ALL else 300
BYTES_COMPARED = 1500  # of memory, of one tensor of two recordings, at most
BYTES_WEIGHED = 750, 1200  # of memory, of one weight of two models that are equal, or have other names, at most
INFERRED = 5.0  # times as long as without it
MEGABYTES = 30  # of memory, of two recordings of one tensor, at most


def safetensors(path, names, value=1.0):
    head = {name: {"dtype": "F32", "shape": [2], "data_offsets": [8 * i, 8 * i + 8]} for i, name in enumerate(names)}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        numbers = value * numpy.arange(1, 2 * len(names) + 1, dtype="float32")
        f.write(struct.pack("<Q", len(text)) + text + numbers.tobytes())


def directory(path, names):
    """A dump as vernier_record.h writes it: a manifest, and files of numbers."""
    os.mkdir(path)
    with open(os.path.join(path, "manifest.jsonl"), "w") as f:
        f.write('{"vernier_dump":1}\n{"step":0,"ids":[1,2]}\n')
        for i, name in enumerate(names):
            file = f"{i:06}.npy"
            numpy.save(os.path.join(path, file), numpy.ones(2, "float32"))
            f.write(json.dumps({"tensor": name, "file": file, "dtype": "f32", "shape": [2]}) + "\n")
        f.write(json.dumps({"complete": len(names)}) + "\n")


# The size of a run: names of one step; steps; layers.
KINDS = {
    "names of one step": lambda n: [f"other.{i}.name" for i in range(n)],
    "names without dots": lambda n: [f"t{i}" for i in range(n)],
    "steps": lambda n: [f"step.{i}/logits" for i in range(n // 4)],
    "layers": lambda n: [f"layer{i}.{point}" for i in range(n // 4)
                         for point in ("q_proj", "k_proj", "v_proj", "output")],
}


def ids_of(kind, n):
    return ",".join(str(i % 100) for i in range(n // 4 if kind == "steps" else 2))


def engine():
    """The program that writes through vernier_capture.h, as an engine would (bench_names.c)."""
    return os.path.join(os.path.dirname(os.path.dirname(VERNIER)), "tests", "bench_names")


class Measured:
    """seconds: of processor; wall: as the clock says; peak: MB of the largest process."""

    def __init__(self, seconds, wall, peak, out):
        self.seconds, self.wall, self.peak, self.out = seconds, wall, peak, out


def run(*arguments, expect=(0,), program=None, timeout=1800):
    """Seconds of processor and peak of one command. A shell stands between, so that the peak is the command's own."""
    script = 'import resource,subprocess,sys;' \
             'r=subprocess.run(sys.argv[1:],stdout=subprocess.PIPE,stderr=subprocess.PIPE);' \
             'u=resource.getrusage(resource.RUSAGE_CHILDREN);sys.stdout.buffer.write(r.stdout);' \
             'sys.stderr.buffer.write(r.stderr+b"\\n%d %f %d" % (r.returncode,u.ru_utime+u.ru_stime,u.ru_maxrss))'
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script, program or VERNIER, *arguments], capture_output=True,
                          timeout=timeout)
    wall = time.monotonic() - begin
    err, _, tail = done.stderr.decode(errors="replace").rpartition("\n")
    status, seconds, peak = tail.split()
    if int(status) not in expect:
        sys.exit(f"vernier {' '.join(arguments)[:200]}: exit status {status}: {err[-500:]}")
    return Measured(float(seconds), wall, int(peak) // 1024, done.stdout)


def commands(kind, n, tag):
    """What is measured, by its name; the first ones make what the later ones read."""
    names, ids = KINDS[kind](n), ["--ids", ids_of(kind, n)]
    safetensors(f"{tag}.safetensors", names)
    yield "import .safetensors", ["import", f"{tag}.safetensors", "-o", f"{tag}.h5", *ids, "--unmapped", "keep"]
    yield "import --dry-run", ["import", f"{tag}.safetensors", "-o", f"{tag}.x.h5", *ids, "--dry-run"]
    if kind == "names of one step":
        numpy.savez(f"{tag}.npz", **{name: numpy.ones(2, "float32") for name in names})
        yield "import .npz", ["import", f"{tag}.npz", "-o", f"{tag}.z.h5", *ids, "--unmapped", "keep"]
        directory(f"{tag}.dump", names)
        yield "import a directory", ["import", f"{tag}.dump", "-o", f"{tag}.d.h5", "--unmapped", "keep"]
    yield "show", ["show", f"{tag}.h5"]
    yield "show --check", ["show", f"{tag}.h5", "--check"]
    yield "show --format json", ["show", f"{tag}.h5", "--format", "json"]
    safetensors(f"{tag}.other.safetensors", names, 1.0001)
    yield "import another", ["import", f"{tag}.other.safetensors", "-o", f"{tag}.other.h5", *ids, "--unmapped", "keep"]
    yield "compare", ["compare", f"{tag}.h5", f"{tag}.h5", "--allow", "itself", "--threads", "1"]
    yield "compare, all outside", ["compare", f"{tag}.h5", f"{tag}.other.h5", "--threads", "1"]
    yield "compare, none there", ["compare", f"{tag}.h5", "one.h5", "--threads", "1"]
    yield "compare, to html", ["compare", f"{tag}.h5", f"{tag}.other.h5", "--threads", "1", "--format", "html", "-o",
                               f"{tag}.html"]
    yield "compare --format json", ["compare", f"{tag}.h5", f"{tag}.h5", "--allow", "itself", "--threads", "1",
                                    "--format", "json"]


def measure(kind, few):
    """Seconds of each command at few and at 4 * few, by the command's name."""
    taken = {}
    safetensors("one.safetensors", ["one"])
    for n in few, 4 * few:
        if kind == "names of one step":
            taken.setdefault("vernier_capture.h",
                             []).append(run("flat.h5", str(n), "1", "1", "flat", program=engine()).seconds)
            check_written(n)
        run("import", "one.safetensors", "-o", "one.h5", "--force", "--unmapped", "keep", "--ids", ids_of(kind, n))
        for what, arguments in commands(kind, n, f"n{n}"):
            taken.setdefault(what, []).append(run(*arguments, expect=(0, 1)).seconds)
        for left in os.listdir("."):
            if not left.startswith("one."):
                (shutil.rmtree if os.path.isdir(left) else os.unlink)(left)
    return taken


def check_written(n):
    """Holds flat.h5 to what bench_names wrote, read by vernier and by Python."""
    shown = json.loads(run("show", "flat.h5", "--format", "json").out)["tensors"]
    assert [t["name"] for t in shown] == [f"other.{i}.name" for i in range(n)], shown[:3]
    with vernier_parity.open("flat.h5") as recording:
        assert sorted(recording.names()) == sorted(f"other.{i}.name" for i in range(n))
        for i in 0, n // 2, n - 1:
            assert list(recording[f"other.{i}.name"]) == [i + 1, -1]


def times_as_long(seconds):
    return seconds[1] / max(seconds[0], 0.05)  # what takes less is the start of the program


def measure_kind(kind, few):
    """Measures every command; returns how many are not linear. Beside other work a figure can be a
    few times too high, so a command that seems not to be linear is measured again, at most three
    times, and the smallest figures count."""
    taken = measure(kind, few)
    for _ in range(3):
        if all(times_as_long(seconds) <= MOST for seconds in taken.values()):
            break
        again = measure(kind, few)
        taken = {what: [min(pair) for pair in zip(seconds, again[what])] for what, seconds in taken.items()}
    bad = 0
    for what, seconds in taken.items():
        ratio = times_as_long(seconds)
        linear = ratio <= MOST
        bad += not linear
        print(f"{kind:20} {what:22} {seconds[0]:7.2f} s for {few}, {seconds[1]:7.2f} s for {4 * few}: "
              f"{ratio:5.2f} times"
              f"{'' if linear else '  NOT LINEAR'}", flush=True)
    return bad


def many_in_one_step(n):
    safetensors("a.safetensors", KINDS["names of one step"](n))
    m = run("import", "a.safetensors", "-o", "a.h5", "--ids", "1,2", "--unmapped", "keep")
    print(f"{n} names in one step: import {m.seconds:.1f} s, {m.peak} MB", end="")
    m = run("show", "a.h5", "--format", "json")
    assert len(json.loads(m.out)["tensors"]) == n
    print(f"; show {m.seconds:.1f} s, {m.peak} MB", end="")
    m = run("compare", "a.h5", "a.h5", "--allow", "itself")
    print(f"; compare {m.seconds:.1f} s, {m.peak} MB", flush=True)
    import h5py
    with h5py.File("a.h5") as f:
        step = f["step.0"]
        assert len(step) == n and step[f"other.{n - 1}.name"][0] == 2 * n - 1


def recording(tensors, steps):
    """Makes a recording of this many tensors and steps. Returns whether its comparison takes more than it should."""
    names = [f"step.{k}/layer{i // 100}.other_{i % 100}" for k in range(steps) for i in range(tensors)]
    ids = ",".join("7" for _ in range(steps))
    for tag, value in ("a", 1.0), ("b", 1.0001):
        safetensors("dump.safetensors", names, value)
        m = run("import", "dump.safetensors", "-o", f"{tag}.h5", "--ids", ids, "--unmapped", "keep", "--force")
    count, size = tensors * steps, os.path.getsize("a.h5")
    print(f"{tensors} tensors x {steps} steps: {size / 1e6:.0f} MB, {size / count:.0f} bytes a tensor")
    report("import", m, count)
    for what, arguments in ("show", ["show", "a.h5"]), ("compare", ["compare", "a.h5", "b.h5"]):
        m = run(*arguments, expect=(0, 1))
        report(what, m, count)
    large = m.peak > MEGABYTES + BYTES_COMPARED * count / 1e6
    if large:
        print(f"  compare: MORE THAN {MEGABYTES} MB AND {BYTES_COMPARED} BYTES A TENSOR")
    return large


def weights(n):
    """Returns how many comparisons of two models of n small weights take more than they should."""
    [(_, (_, model, *_))] = bench_linear.Axes(VERNIER).weights(n)
    shutil.copytree(model, "other")
    with open("other/model.safetensors", "rb+") as f:
        renamed = f.read().replace(b'"other.', b'"under.')
        f.seek(0)
        f.write(renamed)
    bad = 0
    for other, most in zip((model, "other"), BYTES_WEIGHED):
        m = run("weights", model, other, expect=(0, 1))
        report("weights", m, n)
        if m.peak > MEGABYTES + most * n / 1e6:
            print(f"  weights: MORE THAN {MEGABYTES} MB AND {most} BYTES A WEIGHT")
            bad += 1
    return bad


def inferred(steps):
    """Returns whether explain takes too long if every attention is wrong and nobody declared the precision."""
    [(_, arguments)] = bench_linear.Axes(VERNIER).steps(steps)
    plain, m = run(*arguments, "--precision", "f32", expect=(1,)), run(*arguments, expect=(1,))
    slow = m.seconds > INFERRED * plain.seconds
    print(f"explain of {steps} steps: {plain.seconds:.1f} s, with a search for formats {m.seconds:.1f} s"
          f"{'  TOO LONG' if slow else ''}", flush=True)
    return slow


def report(what, m, count):
    print(f"  {what:12} {m.wall:8.1f} s, of processor {m.seconds:8.1f} s, {1e6 * m.seconds / count:6.1f} us a tensor; "
          f"peak {m.peak:6} MB, "
          f"{1e6 * m.peak / count:6.0f} bytes a tensor", flush=True)


def free_memory():
    with open("/proc/meminfo") as f:
        return next(1024 * int(line.split()[1]) for line in f if line.startswith("MemAvailable"))


def written(steps):
    """Makes a recording of TENSORS in each step, as an engine writes it. Returns what each command
    took. It is compared with itself, which takes as much memory as with another recording."""
    count, path, taken = TENSORS * steps, f"full.{steps}.h5", {}
    disk, room, free = count * BYTES_WRITTEN, shutil.disk_usage(".").free, free_memory()
    there = os.path.exists(path)
    print(f"{TENSORS} tensors x {steps} steps: needs {disk / 1e9:.1f} GB of disk in {os.getcwd()} ({room / 1e9:.1f} GB "
          f"are free{', and it is there' if there else ''}), "
          f"and {count * BYTES_COMPARED / 1e9:.1f} GB of memory to be compared ({free / 1e9:.1f} GB are free)",
          flush=True)
    if not there and disk > room:
        sys.exit("the disk is too small")

    def measure(what, *arguments, program=None):
        taken[what] = run(*arguments, program=program, timeout=4 * 3600)
        report(what, taken[what], count)
        return taken[what].out

    if not there:
        print(f"    {measure('write', path, str(TENSORS), str(steps), '1', program=engine()).decode().strip()}")
    print(f"    {os.path.getsize(path) / 1e6:.0f} MB, {os.path.getsize(path) / count:.0f} bytes a tensor")
    assert f"{count} tensors".encode() in measure("show", "show", path).splitlines()[0]
    assert f"{count} digests, 0 wrong".encode() in measure("show --check", "show", path, "--check")
    if count * BYTES_COMPARED > free:
        print("  compare left out: there is not enough memory")
    else:
        assert f"{count} checkpoints compared".encode() in measure("compare", "compare", path, path, "--allow",
                                                                   "itself")
    return taken


def full(sizes):
    """How many commands grow faster than the recording: 1.5 times the time or memory a tensor."""
    taken, bad = [written(steps) for steps in sizes], 0
    for what in taken[0].keys() & taken[-1].keys():
        for of in "seconds", "peak":
            first, last = getattr(taken[0][what], of) / sizes[0], getattr(taken[-1][what], of) / sizes[-1]
            if last > 1.5 * first:
                print(f"  {what}: {of} NOT LINEAR: {first:.4f} a step in {sizes[0]} steps, {last:.4f} in {sizes[-1]}")
                bad += 1
    print(f"full: {bad} not linear")
    return bad


def links(n, padding):
    """Makes a recording of 2 + 11 n names of one tensor in 11 steps, with this many MB of numbers. Returns whether it
    can be read."""
    import h5py
    steps = 11
    with h5py.File("l.h5", "w", libver=("v108", "v108")) as f:
        f.attrs.update(format="vernier-checkpoint", format_version=1, complete=1)
        r = f.create_group("run")
        r.attrs.update(engine="x", precision="f32")
        r["token_ids"], r["positions"] = numpy.full(steps, 1, "i4"), numpy.arange(steps, dtype="i4")
        f["step.0/padding"] = numpy.zeros(padding << 18, "f4")
        f["step.0/t"] = numpy.ones(2, "f4")
        for k in range(steps):
            step = f.require_group(f"step.{k}")
            step.attrs.update(position=k, tokens=1, first_row=0, rows=1)
            for i in range(n):
                step.id.links.create_hard(b"t%d" % i, f.id, b"step.0/t")
    m = run("show", "l.h5", "--format", "json", expect=(0, 2))
    tensors = len(json.loads(m.out)["tensors"]) if m.out else 0
    print(f"{steps * n + 2} names of two tensors in {os.path.getsize('l.h5') / 1e6:.0f} MB: {tensors} read, "
          f"{m.seconds:.1f} s, {m.peak} MB", flush=True)
    os.unlink("l.h5")
    return tensors == steps * n + 2


def main():
    if OPTIONS.full and OPTIONS.folder:
        os.makedirs(OPTIONS.folder, exist_ok=True)
        os.chdir(OPTIONS.folder)
        return full(OPTIONS.steps) != 0
    folder = tempfile.mkdtemp(prefix="vernier-many-")
    try:
        if OPTIONS.full:
            os.chdir(folder)
            return full(OPTIONS.steps) != 0
        os.chdir(folder)
        bad = sum(measure_kind(kind, FEW) for kind in KINDS)
        many_in_one_step(30000 if ALL else 10000)
        bad += recording(150, 100)
        bad += weights(100000)
        bad += inferred(200)
        if ALL:
            bad += recording(1000, 100)
            bad += recording(10000, 100)
            bad += full(OPTIONS.steps)
            bad += not links(100000, 300)
            bad += links(100000, 1)  # more than its bytes speak for
    finally:
        os.chdir("/")
        shutil.rmtree(folder)
    print(f"many names: {bad} not linear, or too large")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
