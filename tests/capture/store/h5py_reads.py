#!/usr/bin/python3
"""h5py_reads.py: a recording as read by a program that knows only h5py and specs/checkpoint.md.

    h5py_reads.py VERNIER MODEL IDS

records MODEL with VERNIER and reads the file with h5py and numpy alone. Exit
status 0 when everything is as the specification says; 77 without h5py.
"""

import json
import os
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    sys.exit(77)


def word(x):
    return x.decode() if isinstance(x, bytes) else str(x)


def record(vernier, path, *args):
    done = subprocess.run([vernier, "capture", "ref", *args, "-o", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return h5py.File(path, "r")


def check_root(f, ids):
    assert word(f.attrs["format"]) == "vernier-checkpoint"
    assert f.attrs["format_version"] == 1 and f.attrs["complete"] == 1
    assert word(f.attrs["created"]).endswith("Z") and word(f.attrs["tool"]) == "vernier"
    assert word(f["run"].attrs["engine"]) == "ref" and word(f["run"].attrs["precision"])
    assert f["run/token_ids"].dtype == np.int32 and list(f["run/token_ids"]) == ids
    assert list(f["run/positions"]) == list(range(len(ids)))
    assert len(word(f["run/token_ids"].attrs["digest"])) == 32


def check_model(f):
    model = f["model"]
    config = json.loads(word(model.attrs["config"]))
    assert word(model.attrs["family"]) == config["model_type"]
    assert word(model.attrs["provenance"]) in ("trained", "synthetic", "unknown")
    names = [word(row["name"]) for row in model["weights"]]
    assert len(names) == len(set(names)) and any(n.endswith("q_proj.weight") for n in names)
    for row in model["weights"]:
        assert word(row["dtype"]) in ("F16", "BF16", "F32", "F64") and len(word(row["digest"])) == 32
        assert all(part.isdigit() for part in word(row["shape"]).split("x"))
        assert row["min"] <= row["mean"] <= row["max"] and row["nan"] == 0 and row["inf"] == 0
    return config


def check_plan(f):
    """Every input is made before it is read, and every name is described."""
    values = {v["name"]: v for v in (json.loads(word(line)) for line in f["plan/values"])}
    weights = {json.loads(word(line))["name"] for line in f["plan/weights"]}
    made = set()
    for line in f["plan/nodes"]:
        node = json.loads(word(line))
        assert set(node["in"]) <= made and set(w for w in node["weights"] if w) <= weights
        made |= {name for name in node["out"] if name}
    for name, v in values.items():
        assert (name in made) != (v["alias_of"] is not None)
        assert len(v["sizes"]) == len(v["axes"].split())
    return values


def tensors(group, prefix=""):
    """Every tensor under every one of its names (visititems gives only one)."""
    for key, o in group.items():
        if isinstance(o, h5py.Dataset):
            yield prefix + key, o
        else:
            yield from tensors(o, prefix + key + ".")


def check_tensors(f, values, dtype):
    """Statistics and shapes against the numbers themselves."""
    found = dict(tensors(f["step.0"]))
    T = f["step.0"].attrs["rows"]
    for name, d in found.items():
        a = d[()].astype(np.float64)
        want = [T if s == "T" else s for s in values[name]["sizes"]]
        assert d.dtype == dtype and list(d.shape) == want, (name, d.dtype, d.shape, want)
        assert d.chunks is None and len(word(d.attrs["digest"])) == 32
        assert word(d.attrs["axes"]) == values[name]["axes"] and len(word(d.attrs["axes"]).split()) == a.ndim
        assert d.attrs["min"] == a.min() and d.attrs["max"] == a.max() and d.attrs["absmax"] == abs(a).max()
        assert np.isclose(d.attrs["mean"], a.mean(), rtol=1e-12, atol=1e-12)
        assert np.isclose(d.attrs["rms"], np.sqrt((a * a).mean()), rtol=1e-12)
        assert d.attrs["nan"] == 0 and d.attrs["inf"] == 0
    return found


def main():
    vernier, model, ids_file = sys.argv[1:]
    ids = [int(x) for x in open(ids_file).read().replace(",", " ").split()]
    with tempfile.TemporaryDirectory() as d:
        with record(vernier, os.path.join(d, "f32.h5"), model, "--ids", "@" + ids_file) as f:
            check_root(f, ids)
            config = check_model(f)
            values = check_plan(f)
            found = check_tensors(f, values, np.float32)
            assert set(found) == {n for n, v in values.items() if not v["on_demand"]}
            assert f["step.0/layer1/input"] == f["step.0/layer0/output"]  # one object
            order = [d.attrs["order"] for d in (f["step.0/embed"], f["step.0/layer0/q_rope"], f["step.0/logits"])]
            assert order[0] < order[1] < order[2]
            assert f["step.0/logits"].shape == (len(ids), config["vocab_size"])
        with record(vernier, os.path.join(d, "f16.h5"), model, "--ids", "@" + ids_file, "--precision", "f16") as f:
            check_tensors(f, values, np.float16)
        with record(vernier, os.path.join(d, "f64.h5"), model, "--ids", "@" + ids_file, "--precision", "f64",
                    "--tokens", "last", "--layers", "1", "--points", "layer*.{q,k}_rope") as f:
            found = check_tensors(f, values, np.float64)
            assert set(found) == {"layer1.q_rope", "layer1.k_rope"}
            assert f["step.0"].attrs["first_row"] == len(ids) - 1 and f["step.0"].attrs["rows"] == 1


main()
