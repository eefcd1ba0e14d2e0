#!/usr/bin/env python3
"""parity_mtp.py: Qwen3.5's multi-token-prediction head, trained, against transformers' parts (fixtures/mtp).

    parity_mtp.py VERNIER

  reference    the criterion of parity_hf.py, for every checkpoint of the golden recordings
  steps        prefill, and the same tokens decoded one by one, leave the same drafts
  GPU          within 4 floors of float16 (a state has the few numbers of one row), on every suitable device; decoded
               steps leave the drafts of one call
  evaluate     its share of accepted drafts, against the count in accepted.json
  faults       each of chapter T, and three others in the head: nothing before the faulty checkpoint changes, which is
               what numpy makes of the recorded tensors; and explain names it
  one token    is within limits, though the hidden state before it is 0
  without      a recording without --mtp is the same, bit for bit, as of a directory without the head's weights
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

import parity_gpu
import parity_hf
from parity_hf import FIXTURES, tensors

BASE, HEAD = (os.path.join(FIXTURES, d) for d in ("qwen3_5_text-trained", "mtp"))


def names(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
    return [n for n in header if n != "__metadata__"]


def published(directory):
    """The model and the weights of its head, as published; nothing asks for the head."""
    for name in "config.json", "tokenizer.json", "tokenizer_config.json":
        shutil.copy(os.path.join(BASE, name), directory)
    files = {"model-00001-of-00002.safetensors": os.path.join(BASE, "model.safetensors"),
             "model-00002-of-00002.safetensors": os.path.join(HEAD, "head.safetensors")}
    for name, path in files.items():
        shutil.copy(path, os.path.join(directory, name))
    with open(os.path.join(directory, "model.safetensors.index.json"), "w") as f:
        json.dump({"weight_map": {n: name for name, path in files.items() for n in names(path)}}, f)


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def says(good, text):
    print(f"{text}{'' if good else '   FAILED'}")
    return good


def steps(vernier, model, engine, more, limit):
    """Every row of the head's scores, from a prompt of three tokens and forced steps, against one call."""
    with open(os.path.join(FIXTURES, "prompts", "p070.ids")) as f:
        ids = f.read().strip().split(",")
    with tempfile.TemporaryDirectory() as d:
        one, many = os.path.join(d, "a.h5"), os.path.join(d, "b.h5")
        common = [vernier, "capture", engine, model, "--mtp", "--points", "*mtp_logits", *more]
        run(*common, "--ids", ",".join(ids), "-o", one)
        run(*common, "--ids", ",".join(ids[:3]), "--force-ids", ",".join(ids[3:]), "-o", many)
        a = tensors(one)["layer4.mtp_logits"][()].astype("f8")
        b = np.concatenate([tensors(many, s)["layer4.mtp_logits"][()] for s in range(len(ids) - 2)]).astype("f8")
    worst = float(np.max(np.abs(a - b)) / np.max(np.abs(a)))
    return says(a.shape == b.shape and worst <= limit,
                f"{engine} {' '.join(more)}: {len(ids) - 3} steps, at most {worst:.1e} from one call, {limit:.0e} "
                f"allowed")


def evaluated(vernier, model):
    with open(os.path.join(HEAD, "accepted.json")) as f:
        want = json.load(f)
    drafts = json.loads(run(vernier, "evaluate", model, "--mtp", "--ids",
                            "@" + os.path.join(FIXTURES, "prompts", want["ids"]), "--window", str(want["window"]),
                            "--stride", str(want["window"]), "--candidate", "ref", "--precision", "f16",
                            "--decode", "0", "--format", "json"))["drafts"]
    share = want["accepted"] / want["drafts"]
    good = drafts["tokens"] == want["drafts"] and abs(drafts["reference"] - share) < 0.5 / want["drafts"] \
        and abs(drafts["candidate"] - share) < 0.01
    return says(good, f"evaluate: {drafts['reference']:.4%} of {drafts['tokens']} drafts accepted (float16 "
                f"{drafts['candidate']:.4%}), transformers {share:.4%} of {want['drafts']}")


def weight(name):
    """A weight of the model or of its head, in float64."""
    for path in os.path.join(BASE, "model.safetensors"), os.path.join(HEAD, "head.safetensors"):
        with open(path, "rb") as f:
            n = struct.unpack("<Q", f.read(8))[0]
            t = json.loads(f.read(n)).get(name)
            if t:
                f.seek(8 + n + t["data_offsets"][0])
                raw = np.frombuffer(f.read(t["data_offsets"][1] - t["data_offsets"][0]), "<u2")
                return (raw.astype("<u4") << 16).view("<f4").astype("f8").reshape(t["shape"])


def normed(x, name):
    return (1 + weight(name)) * x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def attended(r, hidden):
    """The context of queries, keys and values, which see no key before `hidden`, except their own."""
    q, k, v = (r["layer4." + n] for n in ("q_rope", "k_rope", "v_proj"))
    T, H, K = q.shape
    i, j = np.arange(T)[:, None], np.arange(T)[None]
    each = lambda x: np.repeat(x, H // x.shape[1], axis=1)
    s = np.where((j <= i) & ((j >= hidden) | (i == j)), np.einsum("ihd,jhd->hij", q, each(k)) * K ** -0.5, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("hij,jhd->ihd", e / e.sum(-1, keepdims=True), each(v))


def delayed(x, before=None):
    return np.concatenate([np.zeros_like(x[:1]) if before is None else before, x[:-1]])


# what a checkpoint of the head is: right, and under a fault
FAULTS = {
    "T1": ("mtp_joined", lambda r: np.concatenate([r["layer4.mtp_embed_norm"], r["layer4.mtp_hidden_norm"]], 1),
           lambda r: np.concatenate([r["layer4.mtp_hidden_norm"], r["layer4.mtp_embed_norm"]], 1)),
    "T2": ("mtp_hidden", lambda r: delayed(r["final_norm"]), lambda r: delayed(r["layer3.output"])),
    "T3": ("mtp_hidden", lambda r: delayed(r["final_norm"]), lambda r: r["final_norm"]),
    "T4": ("mtp_embed_norm", lambda r: normed(r["embed"], "mtp.pre_fc_norm_embedding.weight"),
           lambda r: normed(r["embed"], "mtp.pre_fc_norm_hidden.weight")),
    "T5": ("mtp_norm", lambda r: normed(r["layer4.output"], "mtp.norm.weight"),
           lambda r: normed(r["layer4.output"], "model.norm.weight")),
    "T6": ("attn_context", lambda r: attended(r, 1), lambda r: attended(r, 0)),
    "W9.before": ("k_proj", lambda r: r["layer4.attn_norm"] @ weight("mtp.layers.0.self_attn.k_proj.weight").T,
                  lambda r: r["layer4.attn_norm"] @ weight("model.layers.3.self_attn.k_proj.weight").T),
}
ALIKE = {"R3b.k": ("k_rope", {"R3b.k", "R3.plus"}), "N7.weight": ("mtp_hidden_norm", {"N7.weight"})}


def faults(vernier, model):
    good, ids = True, ["--ids", "@" + os.path.join(FIXTURES, "prompts", "p070.ids")]
    with tempfile.TemporaryDirectory() as d:
        at = lambda name: os.path.join(d, name)
        run(vernier, "capture", "ref", model, "--mtp", *ids, "--points", "*", "-o", at("r.h5"))
        right = {n: t[()] for n, t in tensors(at("r.h5")).items()}
        for fault in [*FAULTS, *ALIKE]:
            point, *how = FAULTS.get(fault, (ALIKE.get(fault, "?")[0],))
            where = "layer4." + point
            run(vernier, "capture", "ref", model, "--mtp", *ids, "--points", "*", "--force", "-o", at("c.h5"),
                "--inject", f"{fault}@{where}")
            made = {n: t[()] for n, t in tensors(at("c.h5")).items()}
            order = list(right)
            first = min(i for i, n in enumerate(order) if made[n].tobytes() != right[n].tobytes())
            shown = {"attn_context": ("attn_probs", "attn_context")}.get(point, (point,))
            off = [0.0]
            for f, numbers in zip(how, (right, made)):
                want = f({n: x.astype("f8") for n, x in numbers.items()}).reshape(right[where].shape)
                off.append(float(np.max(np.abs(numbers[where] - want)) / np.max(np.abs(want))))
            done = subprocess.run([vernier, "explain", at("r.h5"), at("c.h5"), "--model", model, "--format", "json"],
                                  capture_output=True, text=True)
            said = json.loads(done.stdout)
            named = [a["id"] for a in said["explanations"][0]["answers"]]
            ids_right = ALIKE.get(fault, (0, {fault}))[1]
            good &= says(order[first] in {f"layer4.{s}" for s in shown} and max(off) <= 1e-5 and named[0] in ids_right,
                         f"{fault}: first {order[first]}, at most {max(off):.1e} off, explained by {named[0]}")
        # shows in later calls alone
        steps = ["--ids", "1,2,3", "--force-ids", "4,5,6,7"]
        for name, more in ("r", ()), ("c", ("--inject", "T3.lost@*")):
            run(vernier, "capture", "ref", model, "--mtp", *steps, "--points", "*", "--force", "-o", at(name + ".h5"),
                *more)
        hidden = [[tensors(at(n + ".h5"), s)["layer4.mtp_hidden"][()] for s in range(5)] for n in "rc"]
        lost = all((c == 0).all() and (r != 0).any() for r, c in zip(hidden[0][1:], hidden[1][1:]))
        good &= says(lost and (hidden[0][0] == hidden[1][0]).all(), "T3.lost: shows in later calls alone")
    return good


def alone(vernier, model):
    """Of one token, whose hidden state is all zeros, float16 is within limits of float32."""
    with tempfile.TemporaryDirectory() as d:
        for precision in "f32", "f16":
            run(vernier, "capture", "ref", model, "--mtp", "--ids", "7", "--precision", precision, "-o",
                os.path.join(d, precision))
        done = subprocess.run([vernier, "compare", os.path.join(d, "f32"), os.path.join(d, "f16"), "--model", model],
                              capture_output=True)
    return says(done.returncode == 0, "one token: float16 is within limits")


def unchanged(vernier, model):
    at = {}
    with tempfile.TemporaryDirectory() as d:
        for name, directory in ("with", model), ("without", BASE):
            path = os.path.join(d, name)
            run(vernier, "capture", "ref", directory, "--ids", "@" + os.path.join(FIXTURES, "prompts", "p017.ids"),
                "--points", "*", "-o", path)
            at[name] = {n: t[()].tobytes() for n, t in tensors(path).items()}
    return says(at["with"] == at["without"] and not any("mtp" in n for n in at["with"]),
                f"without --mtp: {len(at['with'])} checkpoints, the same bits")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    vernier, ids = sys.argv[1], "@" + os.path.join(FIXTURES, "prompts", "p017.ids")
    with tempfile.TemporaryDirectory() as d:
        published(d)
        good = parity_hf.check(vernier, d, ids, os.path.join(HEAD, "p017.f64.h5"), "head", "--mtp")
        good &= steps(vernier, d, "ref", ["--precision", "f64"], 1e-12)
        good &= steps(vernier, d, "ref", ["--precision", "f32"], 4e-5)
        good &= evaluated(vernier, d)
        good &= faults(vernier, d)
        good &= unchanged(vernier, d)
        good &= alone(vernier, d)
        for index, name, _ in parity_gpu.devices(vernier):
            good &= parity_gpu.check(vernier, index, d, ids, f"device {index}", {}, 4.0, "--mtp")
            good &= steps(vernier, d, "gpu", ["--precision", "f32", "--device", index], 4e-5)
    print("1 passed, 0 failed" if good else "0 passed, 1 failed")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
