#!/usr/bin/env python3
"""parity_trained.py: small models of the families without a trained fixture, trained on the spot in transformers, held
to the criteria of the fixtures.

    parity_trained.py VERNIER [--steps N] [--prompts N,N,...] [--seed N] [--no-gpu] [--keep DIR] [FAMILY...]

Random weights leave routers undecided, sinks and biases small, norms near one. Each model learns the GNU GPL, as the
fixtures did, for N steps: AdamW on every parameter with a loss that spreads the load of experts, DeepSeek-V3 in its
paper's way (its selection bias follows the load). Then:

  moved     every parameter has left its start, the loss has fallen, more experts serve than a token uses, a sink takes
            some probability, scores come near a cap
  error     libref's float32 and float64 by parity_hf.py's criterion, at every checkpoint, on the unseen end
  greedy    the reference, and each suitable device, decode what transformers' generate does
  gpu       every suitable device by parity_gpu.py's criteria: float16 within 4 floors (16 of one or two tokens); and
            by the verdict of compare, prefill and decode, in which every other choice of experts is a tie

Needs torch and transformers (77, skipped, without). Stores nothing.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

from needs_transformers import golden, torch, transformers  # first: it finds what is in fixtures/
import parity_families
import parity_gpu
import parity_hf
import prediction_head
import random_model
import train

FEW = 8  # tokens
SHAPES = {
    **{family: (of.shape, of.since) for family, of in parity_families.FAMILIES.items()},
    "gemma2": ("--kv-heads 2 --head-dim 16 --hidden 48 --heads 4 --layers 3 --window 11 --caps 8,12 --query-scale 9",
               ()),
    "qwen3_5_text": ("--kv-heads 2 --head-dim 16 --hidden 48 --heads 4 --layers 4 --interval 2 --linear 2,4,8,8 --mtp "
                     "--untied", (5, 17)),
}


def text():
    """(ids to learn, ids of the end, which is not among them)."""
    tokenizer = golden.Tokenizer.from_file(os.path.join(parity_hf.FIXTURES, "qwen2-trained", "tokenizer.json"))
    learnt, end = (tokenizer.encode(part).ids for part in train.read_text(train.TEXT))
    return torch.tensor(learnt), end


def routers(m):
    """Of the layers that have experts."""
    return [parity_families.router_of(layer) for layer in m.model.layers
            if hasattr(layer.mlp, "gate") or hasattr(layer.mlp, "router")]


def learn(m, ids, steps, seed, batch=8, width=64, rate=6e-3):
    """The loss of the first and of the last step."""
    pick, losses, loads = torch.Generator().manual_seed(seed), [], {}

    def count(router, _, made):
        logits, _, chosen = made
        logits = logits.flatten(0, -2)
        load = torch.bincount(chosen.flatten(), minlength=logits.shape[-1]) / chosen.numel()
        loads[router] = load, logits.shape[-1] * (load * logits.softmax(-1).mean(0)).sum()
    hooks = [r.register_forward_hook(count) for r in routers(m)]
    optimizer = torch.optim.AdamW(m.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.0)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 8, (steps - step) / (steps / 2))
        start = torch.randint(0, len(ids) - width - 1, (batch,), generator=pick)
        x = torch.stack([ids[s:s + width + 1] for s in start.tolist()])
        score = lambda scores, of: torch.nn.functional.cross_entropy(scores.flatten(0, 1).float(), of.flatten())
        if hasattr(m, "mtp"):
            final, drafts = prediction_head.run(m, x[:, :-1])
            loss = score(m.lm_head(final), x[:, 1:]) + score(drafts[:, 1:], x[:, 2:])
        else:
            loss = score(m(input_ids=x[:, :-1], use_cache=False).logits, x[:, 1:])
        for router, (_, uneven) in loads.items():
            loss = loss + (0 if hasattr(router, "e_score_correction_bias") else 0.1 * uneven)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        optimizer.step()
        for router, (load, _) in loads.items():
            if hasattr(router, "e_score_correction_bias"):
                router.e_score_correction_bias += 1e-2 * torch.sign(load.mean() - load)
        losses.append(loss.item())
    for hook in hooks:
        hook.remove()
    return losses[0], losses[-1]


def trained(family, ids, steps, seed, dtype, directory):
    """Makes a trained model in a directory; whether each of its parameters has moved, and its loss has fallen."""
    random_model.main([family, *SHAPES[family][0].split(), "--seed", str(seed), "--dtype", dtype, "-o", directory])
    m = golden.load(directory, "f32").train()
    state = lambda: {n: p.detach().clone() for n, p in [*m.named_parameters(), *m.named_buffers()]
                     if "inv_freq" not in n and "embed_scale" not in n}
    before, first_last = state(), learn(m, ids, steps, seed)
    apart = {n: float((p - before[n]).norm() / before[n].norm()) for n, p in state().items()}
    train.store_as(m, dtype)
    head = m.__dict__["_modules"].pop("mtp", None)
    m.eval().save_pretrained(directory)
    if head:
        random_model.add_head(directory, head)
    least = min(apart, key=apart.get)
    good = apart[least] > 0.005 and first_last[1] < first_last[0] - 1
    print(f"{family} {dtype}: {steps} steps, loss {first_last[0]:.2f} to {first_last[1]:.2f}; parameters moved by "
          f"{np.median(list(apart.values())):.0%}, at least {apart[least]:.1%} ({least}){'' if good else '   FAILED'}")
    return good


def in_use(family, m, known):
    """What training made of routers, sinks and caps, in the recorded page."""
    said, good, c = [], True, m.config
    used = [np.bincount(known[n][()].astype(int).ravel()) for n in known if n.endswith(".router_ids")]
    if used:
        said.append(f"{min((u > 0).sum() for u in used)} to {max((u > 0).sum() for u in used)} experts a layer serve, "
                    f"the busiest {max(u.max() / u.sum() for u in used):.0%}")
        good &= all((u > 0).sum() > c.num_experts_per_tok for u in used)
    probs = [known[n][()] for n in known if n.endswith(".attn_probs")]
    if family == "gpt_oss":
        most = max(float((1 - p.sum(-1)).max()) for p in probs)
        said.append(f"a sink takes up to {most:.0%}")
        good &= most > 0.05
    for field, point in ("attn_logit_softcapping", "attn_scores"), ("final_logit_softcapping", "logits"):
        cap = getattr(c, field, None)
        if cap and family != "gemma3_text" or cap and point == "logits":
            most = max(float(np.abs(known[n][()]).max()) for n in known if n.split(".")[-1] == point) / cap
            said.append(f"{point} reach {most:.0%} of their cap")
            good &= most > 0.5
    print(f"{family}: {'; '.join(said) or 'no experts, sinks or caps'}{'' if good else '   FAILED'}")
    return good


def judged(vernier, model, page, device, label, d):
    """The verdict, which also counts tokens behind another choice of experts."""
    ref, gpu = (os.path.join(d, name) for name in ("ref.h5", "gpu.h5"))
    for out, *engine in (ref, "ref"), (gpu, "gpu", "--device", device, "--precision", "f16"):
        subprocess.run([vernier, "capture", *engine, model, "--ids", parity_families.spec(page[:40]), "--force-ids",
                        parity_families.spec(page[40:48]), "--points", "*", "-o", out, "--force"], check=True,
                       stderr=subprocess.DEVNULL)
    status, found = parity_families.vernier_json(vernier, "compare", ref, gpu, "--model", model)
    said = [n for n in found["notes"] if n.startswith(parity_families.FLIPS)]
    good = status == 0 and all("no fault" in n for n in said)
    print(f"{label}: 40 tokens and 8 steps {'within' if good else 'OUTSIDE'} limits; {', '.join(said) or 'no flips'}")
    return good


def checked(vernier, family, page, a, dtype, gpus, d):
    model, good = os.path.join(d, "model"), True
    for tokens in a.prompts:
        ids, path = page[:tokens], os.path.join(d, "f64")
        label = f"{family} {dtype}, {tokens} tokens"
        golden.record(model, parity_families.spec(ids), "f64", path, checked=True)
        known = parity_hf.tensors(path)
        good &= tokens < 40 or in_use(family, golden.load(model, "f32"), known)
        good &= parity_hf.check(vernier, model, parity_families.spec(ids), path, label)
        cost = {n: parity_gpu.cost(t.attrs) for n, t in known.items()}
        for index, _, _ in gpus:
            # of one or two tokens the floor is a few numbers, whose luck it is
            good &= parity_gpu.check(vernier, index, model, parity_families.spec(ids), f"{label}, device {index}", cost,
                                     floors=16.0 if tokens < FEW else 4.0)
        os.remove(path)
    for index, _, _ in gpus:
        good &= judged(vernier, model, page, index, f"{family} {dtype}, device {index}", d)
    engines = {"ref": (("ref",), ("f32", "f64")),
               **{f"device {i}": (("gpu", "--device", i), ("f32",)) for i, _, _ in gpus}}
    for name, (engine, precisions) in engines.items():
        same = parity_families.decodes(vernier, model, d, engine, precisions, page[:20])
        print(f"{family} {dtype}: greedy tokens, {name}: {'equal' if same else 'OTHERS'}")
        good &= same
    return good


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("vernier")
    a.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(SHAPES))
    a.add_argument("--steps", type=int, default=400, metavar="N", help="of training")
    a.add_argument("--prompts", type=lambda s: [int(n) for n in s.split(",")], default=[1, 2, 17, 70, 200],
                   metavar="N,N,...", help="their numbers of tokens; 1,2,17,70,200 when not given")
    a.add_argument("--dtypes", type=lambda s: s.split(","), default=["float32", "bfloat16"], metavar="LIST",
                   help="as stored; float32,bfloat16 when not given")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--no-gpu", action="store_true", help="the reference alone")
    a.add_argument("--keep", metavar="DIR", help="where the trained models are left")
    a = a.parse_intermixed_args()
    for family in a.families:
        if family not in SHAPES:
            sys.exit(f"no family {family}; there are {', '.join(SHAPES)}")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    release = tuple(int(x) for x in transformers.__version__.split(".")[:2])
    (ids, page), gpus, failed = text(), [] if a.no_gpu else parity_gpu.devices(a.vernier), 0
    for family in a.families or SHAPES:
        if release < SHAPES[family][1]:
            print(f"{family}: skipped: transformers {transformers.__version__} runs it in another way")
            continue
        for dtype in a.dtypes:
            with tempfile.TemporaryDirectory() as d:
                began, model = time.time(), os.path.join(d, "model")
                good = trained(family, ids, a.steps, a.seed, dtype, model)
                if a.keep:
                    shutil.copytree(model, os.path.join(a.keep, f"{family}-{dtype}"), dirs_exist_ok=True)
                good &= checked(a.vernier, family, page, a, dtype, gpus, d)
                failed += not good
                print(f"{family} {dtype}: {time.time() - began:.0f} s", flush=True)
    print("1 passed, 0 failed" if not failed else f"0 passed, 1 failed: {failed} models")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
