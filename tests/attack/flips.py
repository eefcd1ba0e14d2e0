#!/usr/bin/env python3
"""flips.py VERNIER [--all] [--seed N] [--jobs N]: single bits of the numbers in recordings, flipped
without changing their digests.

Records a correct pair of each kind (formats, contiguous, in chunks, compressed, big-endian, several steps, axes in
another order, integers, 8-bit floats, the lists of /run, the table of weights), flips one bit of the bytes that h5py
says are numbers, in either file, and runs `vernier compare`, one in eight with --model. Whatever the bit, the
comparison must be refused or outside: exit status 2 or 1, never 0, never a signal; with --model it must say so as well.
A bit of a compressed chunk that changes no number may pass: then h5py must read the same numbers. Every pair as it was
recorded must be within.

Without --all a sample (80 flips); with it at least 5000. --jobs: kinds at a time, each in a folder of its own. Prints
the flips of each kind by exit status. Exit status 1 when one passed, 77 without h5py. Needs h5py, numpy and xxhash.
"""
import argparse, os, random, shutil, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor

try:
    import h5py, numpy as np, xxhash
except ImportError:
    sys.exit(77)

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MODEL = os.path.join(ROOT, "fixtures", "qwen2-trained")
IDS = "@" + os.path.join(ROOT, "fixtures", "prompts", "p017.ids")
SAMPLE, ALL = 80, 5200


def digest(a):
    return np.bytes_(xxhash.xxh3_128_hexdigest(np.ascontiguousarray(a)))


def datasets(f):
    """Paths of all tensors, each once."""
    found, seen = [], set()

    def visit(name, o):
        if isinstance(o, h5py.Dataset) and name.startswith("step.") and h5py.h5o.get_info(o.id).addr not in seen:
            seen.add(h5py.h5o.get_info(o.id).addr)
            found.append(name)

    f.visititems(visit)
    return found


def rewritten(f, name, **how):
    """The same numbers and attributes, stored otherwise."""
    d = f[name]
    data, said, names = d[()], dict(d.attrs), [n for n in all_names(f) if f[n] == d]
    for n in names:
        del f[n]
    new = f.create_dataset(name, data=data, **how)
    for k, v in said.items():
        new.attrs[k] = v
    for n in names:
        if n != name:
            f[n] = new


def all_names(f):
    names = []

    def walk(group, path):
        for k in group:
            o = group.get(k)
            p = f"{path}/{k}" if path else k
            walk(o, p) if isinstance(o, h5py.Group) else names.append(p)

    for k in f:
        if k.startswith("step."):
            walk(f[k], k)
    return names


def in_chunks(path, **how):
    with h5py.File(path, "r+") as f:
        for name in datasets(f):
            shape = f[name].shape
            rewritten(f, name, chunks=(1,) + shape[1:], **how)


def permuted(path):
    with h5py.File(path, "r+") as f:
        for name in datasets(f):
            d = f[name]
            if name.endswith(("q_rope", "q_proj")):
                said, data = dict(d.attrs), np.ascontiguousarray(d[()].transpose(1, 0, 2))
                del f[name]
                new = f.create_dataset(name, data=data)
                for k, v in said.items():
                    new.attrs[k] = v
                new.attrs["axes"], new.attrs["digest"] = np.bytes_("head token dim"), digest(data)


def integers(path):
    with h5py.File(path, "r+") as f:
        for name, x in (("layer0/block_table", np.arange(7)), ("argmax", np.arange(17) * 3)):
            d = f["step.0"].create_dataset(name, data=x.astype("<i4"))
            d.attrs["digest"] = digest(x.astype("<i4"))


def big_endian(path):
    with h5py.File(path, "r+") as f:
        for name in datasets(f):
            rewritten(f, name, dtype=f[name].dtype.newbyteorder(">"))


def f8_values():
    """The finite numbers of f8_e4m3 that are not negative, by their bytes."""
    return np.array([(m / 8 * 2.0 ** -6 if e == 0 else (1 + m / 8) * 2.0 ** (e - 7)) for e in range(16)
                     for m in range(8)][:-1])


def eight_bits(path):
    """Two tensors in the formats of a quantised cache."""
    with h5py.File(path, "r+") as f:
        for name in ("layer0/k_rope", "layer1/v_proj"):
            d = f["step.0"][name]
            x, said, e4m3 = d[()].astype("f4"), dict(d.attrs), name.endswith("k_rope")
            y = np.abs(np.abs(x)[..., None]
                       - f8_values()).argmin(-1) if e4m3 else np.abs(x).astype("<f2").view("<u2") >> 8
            y = (y | (np.signbit(x) << 7)).astype("u1")
            del f["step.0"][name]
            new = f["step.0"].create_dataset(name, data=y)
            for k, v in said.items():
                new.attrs[k] = v
            new.attrs["dtype"], new.attrs["digest"] = np.bytes_("f8_e4m3" if e4m3 else "f8_e5m2"), digest(y)


def ranges(path, what):
    """(dataset, first byte, bytes, width of a number) of everything of a kind."""
    found = []
    with h5py.File(path) as f:
        names = {"tensors": datasets, "logits": lambda f: [n for n in datasets(f) if n.endswith("logits")],
                 "integers": lambda f: ["step.0/layer0/block_table", "step.0/argmax"],
                 "eight bits": lambda f: ["step.0/layer0/k_rope", "step.0/layer1/v_proj"],
                 "permuted": lambda f: [n for n in datasets(f) if n.endswith(("q_rope", "q_proj"))],
                 "lists": lambda f: ["run/token_ids", "run/positions"], "weights": lambda f: ["model/weights"]}[what](f)
        for name in names:
            d = f[name]
            if d.chunks:
                for i in range(d.id.get_num_chunks()):
                    c = d.id.get_chunk_info(i)
                    found.append((name, c.byte_offset, c.size, 1 if d.compression else d.dtype.itemsize))
            else:
                found.append((name, d.id.get_offset(), d.id.get_storage_size(),
                              8 if what == "weights" else d.dtype.itemsize))
    return found


def bits(rng, where, n):
    """n places (dataset, byte, bit): signs, exponents and last bits of first, middle and last numbers, then any."""
    special = []
    for name, at, size, width in where:
        count = size // width
        for i in {0, count // 2, count - 1}:
            number = at + i * width
            special += [(name, number + width - 1, 7), (name, number + width - 1, 6), (name, number + width - 1, 0),
                        (name, number, 0), (name, number + max(width - 2, 0), 7)]
    rng.shuffle(special)
    special = special[:n // 2]
    total = sum(w[2] for w in where)
    while len(special) < n:
        k = rng.randrange(total)
        for name, at, size, _ in where:
            if k < size:
                special.append((name, at + k, rng.randrange(8)))
                break
            k -= size
    return special


def flip(path, byte, bit):
    with open(path, "r+b") as f:
        f.seek(byte)
        b = f.read(1)[0]
        f.seek(byte)
        f.write(bytes([b ^ 1 << bit]))


def numbers(path, name):
    try:
        with h5py.File(path) as f:
            return f[name][()].tobytes()
    except OSError:
        return None


class Kind:
    def __init__(self, name, ref, cand, what="tensors", change=None, compressed=False, extra=(), model=True):
        self.name, self.formats, self.what, self.change, self.compressed, self.extra = (name, (ref, cand), what, change,
                                                                                        compressed, extra)
        self.model = model  # compared with --model too


KINDS = [
    Kind("f32, f16", "f32", "f16"),
    Kind("f32, bf16", "f32", "bf16"),
    Kind("f32, f32", "f32", "f32"),
    Kind("f64, f32", "f64", "f32"),
    Kind("logits, f16", "f32", "f16", "logits"),
    Kind("several steps, f16", "f32", "f16", extra=("--force-ids", "5,6,7")),
    Kind("chunks, f16", "f32", "f16", change=in_chunks),
    Kind("chunks with a checksum", "f32", "f16", change=lambda p: in_chunks(p, fletcher32=True)),
    Kind("compressed, bf16", "f32", "bf16", change=lambda p: in_chunks(p, compression="gzip", shuffle=True),
         compressed=True),
    Kind("axes in another order", "f32", "f16", "permuted", change=permuted),
    Kind("integers", "f32", "f16", "integers", change=integers),
    Kind("big-endian, f16", "f32", "f16", change=big_endian),
    Kind("8-bit floats", "f32", "f32", "eight bits", change=eight_bits, model=False),
    Kind("token ids and positions", "f32", "f16", "lists"),
    Kind("table of weights", "f32", "f16", "weights"),
]


class Pair:
    """A correct pair of one kind, in a folder of its own."""

    def __init__(self, vernier, kind, folder):
        self.vernier, self.kind = vernier, kind
        self.paths = [os.path.join(folder, f"{side}.h5") for side in ("ref", "cand")]
        for path, precision in zip(self.paths, kind.formats):
            subprocess.run([vernier, "capture", "ref", MODEL, "--ids", IDS, "--precision", precision, "-o", path,
                            *kind.extra],
                           check=True, stderr=subprocess.DEVNULL)
        if kind.change is permuted:
            permuted(self.paths[1])
        elif kind.change:
            for path in self.paths:
                kind.change(path)
        self.where = [ranges(path, kind.what) for path in self.paths]
        for model in {False, kind.model}:
            status, said = self.compare(self.paths, model)
            if status != 0:
                sys.exit(f"{kind.name}: the pair as it was recorded has exit status {status}\n{said}")

    def compare(self, paths, model):
        run = subprocess.run([self.vernier, "compare", *paths, *(("--model", MODEL, "--explain") if model else ()),
                              "-q"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                             env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        return run.returncode, run.stderr

    def try_bit(self, side, place, model, folder):
        """Exit status, and what is wrong with it or None."""
        name, byte, bit = place
        own = os.path.join(folder, f"{self.kind.name}.{side}.h5".replace(" ", "_"))
        if not os.path.exists(own):
            shutil.copyfile(self.paths[side], own)
        flip(own, byte, bit)
        paths = list(self.paths)
        paths[side] = own
        status, said = self.compare(paths, model)
        wrong = None
        if status == 0 and self.kind.compressed and numbers(own, name) == numbers(self.paths[side], name):
            status = "no number changed"
        elif status not in (1, 2):
            wrong = (f"{self.kind.name}: {name} of the {('reference', 'candidate')[side]}, byte {byte}, bit {bit}: "
                     f"exit status {status}\n{said}")
        elif status == 2 and len(said.strip().splitlines()) > 2:
            wrong = f"{self.kind.name}: {name}, byte {byte}, bit {bit}: more than one line and the refusal\n{said}"
        flip(own, byte, bit)
        return status, wrong


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("vernier")
    p.add_argument("--all", action="store_true")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    o = p.parse_args()
    each = -(-(ALL if o.all else SAMPLE) // len(KINDS))
    failed, total = [], 0

    def kind_of(kind):
        folder = tempfile.mkdtemp()
        try:
            rng = random.Random(f"{o.seed} {kind.name}")
            pair = Pair(os.path.abspath(o.vernier), kind, folder)
            counts, wrong = {}, []
            for side in (0, 1):
                for i, place in enumerate(bits(rng, pair.where[side], (each + 1) // 2)):
                    status, why = pair.try_bit(side, place, kind.model and i % 8 == 7, folder)
                    counts[status] = counts.get(status, 0) + 1
                    wrong += [why] if why else []
            return counts, wrong
        finally:
            shutil.rmtree(folder)

    with ThreadPoolExecutor(o.jobs) as pool:
        for kind, (counts, wrong) in zip(KINDS, pool.map(kind_of, KINDS)):
            n = sum(counts.values())
            total += n
            failed += wrong
            print(f"{kind.name:24} {n:5} flips: "
                  + ", ".join(f"{v} {('exit status ' + str(k)) if isinstance(k, int) else k}" for k,
                              v in sorted(counts.items(), key=str)),
                  flush=True)
    for f in failed[:20]:
        print("FAILED", f)
    print(f"{total} flips, {len(failed)} passed or went wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
