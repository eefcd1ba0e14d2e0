"""parity_ggml.py VERNIER: what a llama.cpp computed from files in F16, Q8_0 and Q4_K_M, against the reference.

The nodes are a real one's (fixtures/foreign, made by llama_nodes.c). With the precision that they ran in, the floor is
made of ggml's own roundings, and they keep to it: hardly more in nmse than a floor, and every operation on their own
inputs within what another order of sums in float32 leaves. Faults of a thousandth, which q8_0.yaml lets pass, are
outside there and found where they are. In any other precision the same nodes are outside; where none is declared,
theirs is found. Prints the worst of each.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
try:
    import editing as h5py
    import numpy as np
except ImportError:
    print("skipped: no h5py or numpy")
    sys.exit(77)

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures")
vernier = os.path.abspath(sys.argv[1])
bad = 0


def compare(gguf, theirs, *args):
    model = os.path.join(FIXTURES, "gguf", gguf)
    r = subprocess.run([vernier, "compare", gguf + ".h5", theirs, "--names", "llama.cpp", "--model", model, "--allow",
                        "missing", *args,
                        "-o", "report.json", "--force"], capture_output=True, text=True)
    if r.returncode > 1:
        return r.returncode, None, r.stderr
    with open("report.json", encoding="utf-8") as f:
        return r.returncode, json.load(f), r.stderr


def worst(j):
    """In floors: of all checkpoints against the reference in nmse, and of all operations on the candidate's own
    inputs."""
    c = [x for x in j["checkpoints"] if x.get("floor") and x["floor"]["nmse"]]
    return (max(x["metrics"]["nmse"] / x["floor"]["nmse"] for x in c),
            max(max(x["replay"]["local_over_floor"], x["replay"]["worst_token_over_floor"],
                    x["replay"]["max_abs_over_floor"]) for x in c if x["replay"]))


def expect(what, good, told):
    global bad
    bad += not good
    print(f"{'ok' if good else 'BAD':4} {what:44} {told}")


def faulty(theirs, name, change):
    shutil.copy(theirs, "faulty.h5")
    with h5py.File("faulty.h5", "r+") as f:
        f["step.0"][name][...] = change(f["step.0"][name][()])
    return "faulty.h5"


def undeclared(theirs):
    """The same numbers from a program that does not say how it rounds; how this one does."""
    shutil.copy(theirs, "undeclared.h5")
    with h5py.File("undeclared.h5", "r+") as f:
        run = f["run"].attrs
        was, run["engine"], run["precision"], run["precision_from"] = run["precision"], "other", "f32", "numbers"
    return "undeclared.h5", was


def one_head(x):
    x = x.reshape(x.shape[0], -1).copy()
    x[:, :8] *= np.float32(1.003)
    return x


# name, file, what operations may be off by (measured: 0.96, 0.17, 0.59), and faults: where (node
# and checkpoint), and what.
CASES = (
    ("qwen2-f16", "qwen2-trained.f16.gguf", 1.5,
     [("Kcur-1.2", "layer1.k_proj", lambda x: x * np.float32(1.001)),
      ("ffn_up-0", "layer0.up_proj", lambda x: x * np.float32(1.001))]),
    ("qwen2-q8_0", "qwen2-trained.q8_0.gguf", 0.4,
     [("Vcur-0.2", "layer0.v_proj", one_head), ("ffn_norm-1", "layer1.mlp_norm", lambda x: x * np.float32(1.03))]),
    ("qwen2-wide-q4_k_m", "qwen2-wide.q4_k_m.gguf", 1.2,
     [("Qcur-0.2", "layer0.q_proj", lambda x: x * np.float32(1.02)),
      ("ffn_swiglu-0", "layer0.mlp_act", lambda x: x * np.float32(1.03))]),
)

with tempfile.TemporaryDirectory() as d:
    os.chdir(d)
    for name, gguf, most, faults in CASES:
        theirs = os.path.join(FIXTURES, "foreign", f"llama.cpp-{name}.h5")
        with h5py.File(theirs, "r") as f:
            ids = ",".join(map(str, f["run/token_ids"][()]))
        subprocess.run([vernier, "capture", "ref", os.path.join(FIXTURES, "gguf", gguf), "--ids", ids, "--points", "*",
                        "-o", gguf + ".h5"],
                       check=True, stderr=subprocess.DEVNULL)
        status, j, said = compare(gguf, theirs)
        floors, local = worst(j) if j else (9, 9)
        expect(name, status == 0 and floors < 1.5 and local < most,
               f"{floors:.2f} floors, operations {local:.2f} at most {said.strip()}")
        broken = [w for w in j["warnings"] if "alone: " in w] if j else []
        expect(name + " by itself", not broken, "; ".join(broken))
        status, j, said = compare(gguf, theirs, "--floor-precision", "f32", "--limits", "fp32.yaml")
        expect(name + " as float32", status == 1, said.strip())
        for node, point, change in (None, None, None), faults[0]:
            mine, precision = undeclared(faulty(theirs, node, change) if node else theirs)
            status, j, said = compare(gguf, mine)
            warnings = " ".join(j["warnings"]) if j else ""
            expect(f"{name}, {node or 'right'}, undeclared", status == (node is not None) and j["origins"] ==
                   ([point] if node else []) and f"--precision {precision} declares" in warnings,
                   f"origins {j and j['origins']} {warnings} {said.strip()}")
        for node, point, change in faults:
            wrong = faulty(theirs, node, change)
            status, j, said = compare(gguf, wrong)
            origins = [j["checkpoints"][i]["name"] if isinstance(i, int) else i for i in j["origins"]] if j else []
            expect(f"{name}, {node}", status == 1 and origins == [point], f"origins {origins} {said.strip()}")
            if name == "qwen2-f16":
                status, j, said = compare(gguf, wrong, "--limits", "q8_0.yaml", "--no-replay")
                expect(f"{name}, {node}, by the coarsest limits", status == 0, said.strip())
    # A factor smaller than blocks of 8 bits leave room for is within the checkpoint's limits, and
    # its operation is outside.
    small = faulty(os.path.join(FIXTURES, "foreign", "llama.cpp-qwen2-q8_0.h5"), "ffn_out-0",
                   lambda x: x * np.float32(1.001))
    status, j, said = compare("qwen2-trained.q8_0.gguf", small)
    origins = [j["checkpoints"][i]["name"] if isinstance(i, int) else i for i in j["origins"]] if j else []
    expect("qwen2-q8_0, ffn_out-0 times 1.001", status == 1 and origins == ["layer0.down_proj"],
           f"origins {origins} {said.strip()}")
    # Where inputs of products were not recorded, roundings are not known to the bit, and nobody is
    # accused for that.
    for name, gguf, most, faults in CASES:
        shutil.copy(os.path.join(FIXTURES, "foreign", f"llama.cpp-{name}.h5"), "fewer.h5")
        with h5py.File("fewer.h5", "r+") as f:
            for node in [n for n in f["step.0"]
                         if n.startswith(("attn_norm", "ffn_norm", "ffn_swiglu", "result_norm", "kqv_out", "fattn"))]:
                del f["step.0"][node]
        status, j, said = compare(gguf, "fewer.h5")
        expect(f"{name}, what goes into products left out", status == 0 and j["origins"] == [], f"{said.strip()}")
sys.exit(1 if bad else 0)
