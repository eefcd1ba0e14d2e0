"""record_help.py: what the tests of vernier_parity.record() have in common: models, prompts, and `vernier compare` with
a count of what held."""
import functools
import json
import os
import subprocess
import sys

from needs_transformers import torch, transformers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "capture", "python"))
import vernier_parity

record = functools.partial(vernier_parity.record, force=True)  # a test writes one file again and again

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures")
FAMILIES = ("gemma2", "gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen3_5_text")
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
OUTSIDE_LIMITS = 1


def model_of(family):
    return os.path.join(FIXTURES, family + "-trained")


def prompt(name):
    with open(os.path.join(FIXTURES, "prompts", name + ".ids"), encoding="ascii") as f:
        return [int(x) for x in f.read().split(",")]


def load(family, dtype=F32, attention="eager"):
    model = transformers.AutoModelForCausalLM.from_pretrained(model_of(family), dtype=dtype,
                                                              attn_implementation=attention)
    return model.eval()


def run(model, ids, **more):
    with torch.no_grad():
        return model(torch.tensor(ids if isinstance(ids[0], list) else [ids]), **more).logits


class Bench:
    def __init__(self, vernier_program, folder):
        self.program, self.folder, self.bad, self.good = os.path.abspath(vernier_program), folder, 0, 0

    def at(self, name):
        return os.path.join(self.folder, name)

    def vernier(self, *args):
        return subprocess.run([self.program, *args], capture_output=True, text=True)

    def reference(self, family, ids, *more, name="ref.h5"):
        done = self.vernier("capture", "ref", model_of(family), "--ids", ",".join(map(str, ids)), "--threads", "1",
                            "--force", "-o",
                            self.at(name), *more)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return self.at(name)

    def compare(self, ref, cand, *more):
        """(exit status, the JSON report or what was said)."""
        done = self.vernier("compare", ref, cand, "--threads", "1", "--format", "json", *more)
        return done.returncode, json.loads(done.stdout) if done.returncode < 2 else {"summary": done.stderr.strip()}

    def say(self, what, holds, more=""):
        self.good += bool(holds)
        self.bad += not holds
        print(f"{what}{': ' + more if more else ''}{'' if holds else '   FAILED'}", flush=True)

    def within(self, what, ref, cand, *more, weights=True):
        status, report = self.compare(ref, cand, *more)
        listed = report.get("checkpoints", [])
        all_there = all(c["status"] == "within" for c in listed)
        same = not weights or (report.get("weights") or {}).get("differ", 0) == 0
        self.say(what, status == 0 and listed and all_there and same, f"{report['summary']} {len(listed)} checkpoints")
        return report


def greedy(model, ids, n, **more):
    ids = torch.tensor(ids if isinstance(ids[0], list) else [ids])
    more = {"attention_mask": torch.ones_like(ids), **more}
    return model.generate(ids, max_new_tokens=n, do_sample=False, eos_token_id=None, pad_token_id=0, **more)
