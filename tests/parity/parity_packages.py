"""parity_packages.py VERNIER [PACKAGE...]: shipped name maps against the packages that they are for.

Runs each package that this Python has (fixtures/packages.py) on fixtures and on random models of families that a
fixture does not have in the form that the package wants, imports the dump with the map of its name, and by the numbers
alone (--like), and compares both with the reference. Packages that are missing are named; without any the test is
skipped.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import needs_transformers  # noqa: F401
import torch
import transformers

import packages

transformers.utils.logging.disable_progress_bar()

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "..", "fixtures")
vernier = os.path.abspath(sys.argv[1])
NEEDS = {"mlx": ("mlx", "mlx_lm"), "ort-genai": ("onnxruntime", "onnxruntime_genai", "onnx_ir"),
         "keras-hub": ("keras_hub", "jax"), "litgpt": ("litgpt",), "torchtune": ("torchtune", "torchao"),
         "hidden_states": ("transformers",)}
# (model, checkpoints compared at least)
MODELS = {"mlx": (("qwen2", 33), ("mistral", 33), ("gemma2", 35), ("qwen3 random", 37)),
          "ort-genai": (("qwen3", 38), ("llama random", 34)), "keras-hub": (("qwen2", 33), ("mistral", 33)),
          "litgpt": (("qwen2", 29),), "torchtune": (("qwen2", 29),),
          "hidden_states": (("qwen2", 6), ("llama", 6), ("gpt2", 6), ("qwen3_5_text", 6))}


def run(*args):
    return subprocess.run([vernier, *args], capture_output=True, text=True)


def model_of(folder, name):
    """The directory of a fixture; "FAMILY random": one with heads of 16 and no biases or scaled positions."""
    family, *random = name.split()
    if not random:
        return os.path.join(FIXTURES, f"{family}-trained")
    to = os.path.join(folder, name.replace(" ", "-"))
    kind = {"qwen3": transformers.Qwen3Config, "llama": transformers.LlamaConfig}[family]
    config = kind(vocab_size=512, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                  num_key_value_heads=2, head_dim=16, max_position_embeddings=256, tie_word_embeddings=False,
                  attention_bias=False)
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn_like(p)) if p.ndim == 1 else p.mul_(4)
    model.save_pretrained(to)
    # the tokenizer that exporters copy
    for file in ("tokenizer.json", "tokenizer_config.json"):
        with open(os.path.join(FIXTURES, "qwen2-trained", file), "rb") as a, open(os.path.join(to, file), "wb") as b:
            b.write(a.read())
    return to


def compared(folder, dump, model, *names):
    """(outcome, checkpoints compared)"""
    r = run("import", dump, *names, "--model", model, "--ids-from", folder + "/ref.h5", "-o", folder + "/cand.h5",
            "--force", "--strict")
    if r.returncode:
        return f"import: {r.stderr.strip()[-300:]}", 0
    r = run("compare", folder + "/ref.h5", folder + "/cand.h5", "--allow", "missing", "--limits", "fp32.yaml",
            "--format", "json")
    if r.returncode == 2:
        return r.stderr.strip(), 0
    j = json.loads(r.stdout)
    return j["verdict"], sum(bool(c.get("elements")) for c in j["checkpoints"])


def main():
    bad = tried = 0
    ids = ",".join(str(i) for i in packages.prompt())
    with tempfile.TemporaryDirectory() as folder:
        for package in sys.argv[2:] or packages.PACKAGES:
            missing = [n for n in NEEDS[package] if importlib.util.find_spec(n) is None]
            if missing:
                print(f"     {package}: not tried, no {missing[0]}")
                continue
            tried += 1
            for name, least in MODELS[package]:
                model = model_of(folder, name)
                run("capture", "ref", model, "--ids", ids, "--points", "*", "-o", folder + "/ref.h5", "--force")
                tensors = packages.PACKAGES[package][0](model, packages.prompt())
                dump = folder + "/dump.npz"
                packages.np.savez(dump, **{n: a for n, a in tensors.items() if a.dtype == packages.np.float32})
                for how in (("--names", package), ("--like", folder + "/ref.h5")):
                    outcome, n = compared(folder, dump, model, *how)
                    good = outcome == "within" and n >= least
                    bad += not good
                    print(f"{'ok' if good else 'BAD':4} {package:14} {name:14} {how[0]:8} {outcome}, {n} of at least "
                          f"{least} compared", flush=True)
    if not tried and not bad:
        print("skipped: none of the packages is here")
        sys.exit(77)
    sys.exit(bad > 0)


main()
