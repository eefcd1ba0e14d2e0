#!/usr/bin/env python3
"""parity_gguf.py: a GGUF file records the bits of the directory it was made from.

    parity_gguf.py VERNIER [--sample N]

Every trained fixture and every random model of fixtures/gguf_twins.py is written as
GGUF in several types by the gguf package, and as a HuggingFace directory that holds
the float32 numbers which the package reads back from that file. Both are recorded by
the reference in float32: every tensor must be the same, bit for bit. In F32 the
directory is the model itself, but for Qwen3.5, where a converter rounds (specs/models.md
4.6). What transformers computes with a random directory must be near the F32 file's logits, if it
knows the names in there. A family that vernier has no page for is passed over. --sample N: every Nth type, of
the next model others, for a short run.

Needs gguf, torch and safetensors (fixtures/requirements.txt); exit status 77 without.
"""
import os
import shutil
import subprocess
import sys
import tempfile

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures")
sys.path.insert(0, FIXTURES)
try:
    import h5py
    import gguf_twins
    import numpy as np
    import torch
    import transformers
    import prediction_head
    from safetensors.numpy import save_file
except ImportError as e:
    print(f"SKIPPED: {e}")
    sys.exit(77)

TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K", "Q4_K_M")
IDS = "1,2,3,39,7,9,11,0,5,5,5,2"


def record(vernier, model, out, *more):
    """Digests by name; a string instead when there is no such family."""
    r = subprocess.run([vernier, "capture", "ref", model, "--ids", IDS, "--points", "*", "-o", out, "--force", *more],
                       capture_output=True, text=True)
    if r.returncode:
        if "is not supported (known:" in r.stderr:
            return r.stderr.strip()
        sys.exit(r.stderr)
    found = {}
    with h5py.File(out) as f:
        f["step.0"].visititems(lambda name, o: found.__setitem__(name, o.attrs["digest"]) if isinstance(o, h5py.Dataset)
                               else None)
    return found


def near_transformers(label, directory, recording):
    """None: transformers does not know all names in the directory, or lacks some."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model, said = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    if said["missing_keys"] or said["unexpected_keys"]:
        return None
    with torch.no_grad():
        must = model.eval()(torch.tensor([[int(i) for i in IDS.split(",")]])).logits[0].numpy()
    with h5py.File(recording) as f:
        apart = np.linalg.norm(f["step.0/logits"][()] - must) / np.linalg.norm(must)
    print(f"{label} F32: logits {apart:.1e} of their length from those of transformers")
    return bool(apart <= 1e-5)


def check(vernier, label, directory, types, d):
    """These types of one model; None when its family has no page."""
    good = True
    with open(os.path.join(directory, "config.json"), encoding="utf-8") as f:
        config = f.read()
    for kind in types:
        twin, plain = os.path.join(d, "twin.gguf"), os.path.join(d, "plain")
        try:
            must = gguf_twins.write(directory, twin, kind)
        except SystemExit as e:  # a setting that no key of the format has
            print(f"{label}: passed over: {e}")
            return None
        shutil.rmtree(plain, ignore_errors=True)
        if kind == "F32" and "qwen3_5" not in config and "gemma" not in config:
            shutil.copytree(directory, plain)
        else:
            os.makedirs(plain)
            shutil.copy(os.path.join(directory, "config.json"), plain)
            save_file(must, os.path.join(plain, "model.safetensors"))
        head = ["--mtp"] if "vernier_mtp" in config else []
        a, b = record(vernier, plain, os.path.join(d, "a.h5")), record(vernier, twin, os.path.join(d, "b.h5"), *head)
        if isinstance(a, str) or isinstance(b, str):
            print(f"{label}: passed over: {a if isinstance(a, str) else b}")
            return None
        differ = [n for n in a if a[n] != b.get(n)]
        good &= bool(a) and not differ and len(a) == len(b)
        if kind == "F32" and "trained" not in label:
            good &= near_transformers(label, directory, os.path.join(d, "b.h5")) is not False
        print(f"{label} {kind}: {len(a)} tensors, {len(differ)} differ{', first ' + differ[0] if differ else ''}")
    return good


def main():
    if len(sys.argv) != 2 and (len(sys.argv) != 4 or sys.argv[2] != "--sample"):
        sys.exit(__doc__)
    good, done, every = 0, 0, int(sys.argv[3]) if len(sys.argv) == 4 else 1
    with tempfile.TemporaryDirectory() as d:
        models = [(n, os.path.join(FIXTURES, n)) for n in sorted(os.listdir(FIXTURES)) if n.endswith("-trained")]
        models.append(("a prediction head", os.path.join(d, "head")))
        os.mkdir(models[-1][1])
        prediction_head.whole(*(os.path.join(FIXTURES, n) for n in ("qwen3_5_text-trained", "mtp")), models[-1][1])
        for name, config in gguf_twins.RANDOM.items():
            models.append((name, os.path.join(d, name)))
            gguf_twins.random_directory(name, models[-1][1])
            # rows of 256 as well
            wide = {"n_embd": 256,
                    "n_inner": 512} if "n_embd" in config else {"hidden_size": 256, "intermediate_size": 512}
            models.append((name + ", wide", os.path.join(d, name + ".wide")))
            gguf_twins.random_directory(name, models[-1][1], **wide)
        for n, (label, directory) in enumerate(models):
            result = check(sys.argv[1], label, directory, TYPES[n % every::every], d)
            done += result is not None
            good += result is True
    print(f"{good} passed, {done - good} failed")
    sys.exit(0 if good == done and done else 1)


if __name__ == "__main__":
    main()
