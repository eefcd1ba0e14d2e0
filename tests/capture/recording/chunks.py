#!/usr/bin/env python3
"""chunks.py VERNIER: tensors in chunks of every shape, compressed or not, are read as the same numbers as
contiguous ones.

h5py writes both, so the test shares no code with the reader. Each tensor has more than the 16 MB from which on it is
read in parts, except single numbers, empty tensors and those of rank 6; and except many small ones, for which no
process of their own may be started. The reports about a wrong tensor must be the same too, and a damaged file gives one
line. Needs h5py and numpy.
"""
import os, re, resource, subprocess, sys, tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    sys.exit(77)

T = 512
PACKED = {"compression": "gzip", "compression_opts": 1}
ALL = {"shuffle": True, "fletcher32": True, **PACKED}
# Shape, dtype and ways to be stored; several share their numbers.
TENSORS = [
    ((T, 8704), "<f4", [{"chunks": True}, {"chunks": True, **ALL}, {"chunks": (T, 16), **PACKED},
                        {"chunks": (1, 8704), **PACKED}, {"chunks": (T, 8704), **ALL},
                        {"chunks": (7, 999), **PACKED}, {"chunks": (600, 9000), "maxshape": (None, None), **PACKED},
                        {"chunks": (30, 200), "maxshape": (None, 8704)}]),
    ((2, 70, 128, 256), "<f4",
     [{"chunks": (1, 64, 64, 64), **PACKED}, {"chunks": True, **ALL}, {"chunks": (2, 1, 128, 30), "fletcher32": True}]),
    ((16, T, 1088), "<f2",
     [{"chunks": (16, 1, 1088), **PACKED}, {"chunks": (1, T, 1088), **PACKED}, {"chunks": (3, 100, 64)}]),
    ((T * 8704,), "<f4", [{"chunks": True, **PACKED}, {"chunks": (T * 8704,), **PACKED}, {"chunks": (50000,)}]),
    ((4200000, 2), "<u2", [{"chunks": (2100000, 1), **PACKED}]),  # stored as bf16
    ((T, 4352), ">f8", [{}, {"chunks": (T, 100), **PACKED}]),
    ((3, 2, 2, 3, 5, 7), "<i4", [{"chunks": (2, 1, 2, 2, 3, 4), **PACKED}]),
    ((0, 5), "<f4", [{"chunks": (1, 5), "maxshape": (None, 5), **PACKED}]),
    ((), "<f4", [{}]),
]


def numbers(shape, dtype):
    """Numbers whose neighbours and chunks all differ, and that compress fast."""
    n = int(np.prod(shape))
    x = (np.arange(n, dtype=np.uint32) >> 6) * 3 % 40009 + np.tile(np.arange(64, dtype=np.uint32), n // 64 + 1)[:n]
    return x.astype("<u2").reshape(shape) if dtype == "<u2" else (x % 2048 if dtype == "<f2"
                                                                  else x).astype(dtype).reshape(shape)


def write(path, tensors):
    """tensors: {name: (array, axes, how)}."""
    with h5py.File(path, "w") as f:
        f.attrs.update(format="vernier-checkpoint", format_version=1, complete=1)
        r = f.create_group("run")
        r.attrs.update(engine="chunks", precision="f32")
        r["token_ids"] = r["positions"] = np.arange(T, dtype=np.int32)
        s = f.create_group("step.0")
        s.attrs.update(position=0, tokens=T)
        for order, (name, (x, axes, how)) in enumerate(tensors.items()):
            d = s.create_dataset(name, data=x, **how)
            d.attrs.update(order=order, layer=0, axes=axes)
            if x.dtype == np.uint16:
                d.attrs["dtype"] = "bf16"


class Bench:
    def __init__(self, vernier, folder):
        self.vernier, self.folder, self.missed = vernier, folder, 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *arguments, temporary=None):
        return subprocess.run([self.vernier, *arguments], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "TMPDIR": temporary or self.folder})

    def say(self, ok, what, done=None):
        self.missed += not ok
        print(f"{'ok' if ok else 'FAILED':6}  {what}", flush=True)
        if not ok and done:
            print(f"[{done.returncode}]\n{done.stdout[:2000]}{done.stderr[:2000]}")


def same_numbers(b):
    for shape, dtype, ways in TENSORS:
        x = numbers(shape, dtype)
        names = [f"layer0.t{i}" for i in range(len(ways))]
        write(b.path("plain.h5"), {name: (x if dtype[0] == "<" else x.astype("<f8"), "", {}) for name in names})
        write(b.path("packed.h5"), {name: (x, "", how) for name, how in zip(names, ways)})
        done = b.run("compare", "plain.h5", "packed.h5", "--bitwise")
        said = f"{len(ways)} checkpoint{'s' if len(ways) > 1 else ''} compared" if x.size else "no elements"
        b.say(done.returncode == (x.size == 0) and said in done.stdout,
              f"{dtype} {shape}: {len(ways)} ways to be stored, the same bits", done)


def same_reports(b):
    """The parts of a report about checkpoints outside their limits: metrics, words, profiles, all that is read from a
    tensor."""
    x = numbers((16, T, 544), "<f4")
    y = x * np.float32(1.001)
    y[3, 100:110] = x[4, 100:110]
    wide = numbers((T, 8704), "<f4")
    sides = ({"layer0.attn_scores": (x, "head token key"), "layer0.down_proj": (wide, "token hidden")},
             {"layer0.attn_scores": (y.transpose(1, 0, 2), "token head key"),
              "layer0.down_proj": (wide[:, ::-1], "token hidden")})
    said = []
    for ways in ({}, {}), ({"chunks": (8, 9, 64), **ALL}, {"chunks": (T, 17), **PACKED}):
        for path, side in zip(("a.h5", "b.h5"), sides):
            write(b.path(path), {name: (values, axes, how) for (name, (values, axes)), how in zip(side.items(), ways)})
        done = b.run("compare", "a.h5", "b.h5", "--format", "json")
        said.append(done.stdout)
    b.say(len(said[0]) > 2000 and said[0] == said[1] and done.returncode == 1, "the same report of what is wrong", done)
    done = b.run("compare", "a.h5", "b.h5", "--format", "json", temporary="/dev/null/nowhere")
    b.say(said[0] == done.stdout, "TMPDIR is no folder: another one", done)


def many_small(b):
    """A process for each tensor would take 20 s. One tensor has a wrong checksum: only that one is
    reported."""
    n, bad, large = 1500, 700, 30000
    some = {f"layer{i}.output": numbers((large, 5) if i % 100 == 48 else (3, 5 + i % 7), "<f4") + np.float32(i)
            for i in range(n)}
    ways = [PACKED, ALL, {"chunks": (2, 4)}, {}]
    write(b.path("plain.h5"), {name: (x, "", {}) for name, x in some.items()})
    write(b.path("packed.h5"),
          {name: (x if i % 4 < 3 else x.astype(">f4"), "", ways[i % 4]) for i, (name, x) in enumerate(some.items())})
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = b.run("compare", "plain.h5", "packed.h5", "--bitwise")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    b.say(done.returncode == 0 and f"{n} checkpoints compared" in done.stdout, f"{n} small ones: the same bits", done)
    b.say(took < 7, "which takes less than 7 s of computing", None)
    with h5py.File(b.path("packed.h5"), "r+") as f:
        name = f"layer{bad}.output"
        assert bad % 4 == 0
        del f["step.0"][name]
        d = f["step.0"].create_dataset(name, data=some[name], **ALL)
        d.attrs.update(order=bad, layer=0, axes="")
        at = d.id.get_chunk_info(0)
    with open(b.path("packed.h5"), "r+b") as f:
        f.seek(at.byte_offset + at.size // 2)
        f.write(b"\xff" * 4)
    done = b.run("compare", "plain.h5", "packed.h5", "--bitwise")
    told = [l for l in (done.stdout + done.stderr).splitlines() if re.search("^finding .*cannot be read", l)]
    b.say(done.returncode == 1 and len(told) == 1 and f"packed.h5: {name}: its numbers cannot be read" in told[0]
          and f"1 of {n} checkpoints, 1 unreadable" in done.stdout,
          f"one of them damaged: {told[0] if told else ''}", done)


def damaged(b):
    x = numbers((T, 8704), "<f4")
    write(b.path("plain.h5"), {"layer0.down_proj": (x, "token hidden", {})})

    def change(what, how, edit, status, words):
        write(b.path("bad.h5"), {"layer0.down_proj": (x, "token hidden", how)})
        with h5py.File(b.path("bad.h5")) as f:
            d = f["step.0/layer0.down_proj"]
            chunk = d.id.get_chunk_info(d.id.get_num_chunks() // 2)
        with open(b.path("bad.h5"), "rb") as f:
            data = bytearray(f.read())
        edit(data, chunk)
        with open(b.path("bad.h5"), "wb") as f:
            f.write(data)
        done = b.run("compare", "plain.h5", "bad.h5")
        line = [l for l in (done.stdout + done.stderr).splitlines() if re.search(words, l)]
        b.say(done.returncode == status and len(line) == 1 and (status == 1 or done.stderr.count("\n") == 1),
              f"{what}: {line[0] if line else ''}", done)

    def address(to):
        def edit(data, chunk):
            old = int(chunk.byte_offset).to_bytes(8, "little")
            assert data.count(old) == 1
            at = data.index(old)
            data[at:at + 8] = to.to_bytes(8, "little")
        return edit

    def rot(data, chunk):
        at = chunk.byte_offset + chunk.size // 2
        data[at:at + 40] = b"\xff" * 40

    def index(data, chunk):
        for at in [m.start() for m in re.finditer(b"TREE\x01", data)]:
            data[at:at + 4] = b"TREF"

    grid = {"chunks": (64, 640)}
    change("compressed numbers changed", {**grid, **PACKED}, rot, 1,
           "^finding .*bad.h5: layer0.down_proj: its numbers cannot be read")
    change("numbers with a checksum changed", {**grid, "fletcher32": True}, rot, 1,
           "^finding .*bad.h5: layer0.down_proj: its numbers cannot be read")
    change("the index is none", {**grid, **PACKED}, index, 2,
           "bad.h5: /step.0/layer0.down_proj: .* bytes cannot come from the 0 that are stored")
    change("a chunk behind the end of the file", {**grid, **PACKED}, address(1 << 40), 1,
           "^finding .*bad.h5: layer0.down_proj: its numbers cannot be read")

    write(b.path("bad.h5"), {})
    with h5py.File(b.path("bad.h5"), "r+") as f:
        d = f["step.0"].create_dataset("layer0.down_proj", shape=x.shape, dtype="<f4", **grid, **PACKED)
        d[64:] = x[64:]
    done = b.run("compare", "plain.h5", "bad.h5")
    said = "vernier compare: bad.h5: /step.0/layer0.down_proj: 14 of its 112 chunks were never written\n"
    b.say(done.returncode == 2 and done.stderr == said, "chunks that were never written", done)


def main():
    with tempfile.TemporaryDirectory() as folder:
        b = Bench(os.path.abspath(sys.argv[1]), folder)
        same_numbers(b)
        many_small(b)
        same_reports(b)
        damaged(b)
        b.say(not [n for n in os.listdir(folder) if not n.endswith(".h5")], "nothing is left behind")
    return 1 if b.missed else 0


if __name__ == "__main__":
    sys.exit(main())
