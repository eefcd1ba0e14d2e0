#!/usr/bin/env python3
"""bench_torch.py MODEL [--what WHAT,...] [--precision f16] [--tokens 128,512,2048] [--repeat 5] [--device cuda]
[--threads N]

What torch and transformers take for the works of bench_gpu on the same device, or of bench_ref on the CPU. Prints JSON:
every round of each, in milliseconds.

  pass        the whole model, all logits: launched by transformers (way `eager`: attention by sdpa) and, with CUDA,
              from a CUDA graph (way `graph`)
  next        the same of one token behind so many, `graph` with a static cache; and all linear layers alone, from a
              CUDA graph (way `linears`: cuBLAS)
  operations  each operation of the model alone, all layers after another, from a CUDA graph where there is CUDA
  limits      GB/s of copying a large tensor (read and written), TFLOP/s of a large product of matrices
  load        seconds of reading the safetensors to the device, and there into the precision

A way that fails says why, under `why`. Needs torch and transformers; run by bench.py and bench_gpu.py.
"""
import argparse
import glob
import json
import os
import sys
import time

import torch
import torch.nn.functional as F

KINDS = {"f16": torch.float16, "f32": torch.float32, "bf16": torch.bfloat16}


class Clock:
    """Times work on one device: by events of the device, or by the clock on the CPU."""

    def __init__(self, device, repeat):
        self.cuda, self.repeat = device == "cuda", repeat

    def once(self, work):
        if not self.cuda:
            start = time.perf_counter()
            work()
            return (time.perf_counter() - start) * 1e3
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    def rounds(self, work, before=lambda: None):
        """Milliseconds of each round; `before` restores what the work changes, outside the time."""
        taken = []
        for i in range(self.repeat + 1):  # the first warms up
            before()
            if self.cuda:
                torch.cuda.synchronize()
            taken.append(self.once(work))
        return taken[1:]

    def graph(self, work, before=lambda: None):
        """The work as a CUDA graph; on the CPU, the work itself."""
        if not self.cuda:
            return work
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                before()
                work()
        torch.cuda.current_stream().wait_stream(side)
        before()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph.replay


class Model:
    def __init__(self, o):
        from transformers import AutoModelForCausalLM
        self.o, self.clock = o, Clock(o.device, o.repeat)
        try:
            self.hf = AutoModelForCausalLM.from_pretrained(o.model, dtype=KINDS[o.precision],
                                                           attn_implementation="sdpa")
        except ValueError:  # a model with sinks has no sdpa: the implementation that transformers chooses
            self.hf = AutoModelForCausalLM.from_pretrained(o.model, dtype=KINDS[o.precision])
        self.hf = self.hf.eval().to(o.device)
        c = self.config = self.hf.config
        self.heads, self.width, self.layers = c.num_attention_heads, c.hidden_size, c.num_hidden_layers
        self.key_heads = getattr(c, "num_key_value_heads", None) or self.heads
        self.head = getattr(c, "head_dim", None) or self.width // self.heads

    def ids(self, tokens):
        return (torch.arange(tokens, device=self.o.device)[None] * 7919 + 13) % self.config.vocab_size

    def random(self, *shape):
        return torch.randn(*shape, device=self.o.device, dtype=KINDS[self.o.precision])

    def row(self, way, tokens, behind, measure):
        """The rounds of one way, or why there are none."""
        try:
            return {"way": way, "tokens": tokens, "behind": behind, "ms": measure()}
        except Exception as e:  # whatever torch or transformers cannot do here; the table says so
            return {"way": way, "tokens": tokens, "behind": behind,
                    "why": f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"}

    def passes(self, tokens):
        ids = self.ids(tokens)

        def work():
            # with a cache, as by default: without one, transformers asks the device
            # for the positions
            return self.hf(ids)

        yield self.row("eager", tokens, 0, lambda: self.clock.rounds(work))
        if self.clock.cuda:
            yield self.row("graph", tokens, 0, lambda: self.clock.rounds(self.clock.graph(work)))

    def next(self, behind):
        from transformers import DynamicCache, StaticCache
        ids, one = self.ids(behind), self.ids(1)

        def eager():
            cache = DynamicCache(config=self.config)
            self.hf(ids, past_key_values=cache, logits_to_keep=1)
            return self.clock.rounds(lambda: self.hf(one, past_key_values=cache),
                                     lambda: cache.get_seq_length() > behind and cache.crop(-1))

        def graph():
            cache = StaticCache(config=self.config, max_cache_len=behind + 1)
            self.hf(ids, past_key_values=cache, logits_to_keep=1)

            def back():
                for layer in cache.layers:
                    layer.cumulative_length.fill_(behind)

            return self.clock.rounds(self.clock.graph(lambda: self.hf(one, past_key_values=cache), back), back)

        yield self.row("eager", 1, behind, eager)
        if self.clock.cuda:
            yield self.row("graph", 1, behind, graph)
        yield self.row("linears", 1, behind, lambda: self.clock.rounds(self.clock.graph(self.linears(1))))

    def linears(self, tokens):
        layers = [m for m in self.hf.modules() if isinstance(m, torch.nn.Linear)]
        x = {n: self.random(tokens, n) for n in {m.in_features for m in layers}}
        return lambda: [m(x[m.in_features]) for m in layers]

    def attention(self, tokens, behind):
        q = self.random(1, self.heads, tokens, self.head)
        kept = [[self.random(1, self.key_heads, behind + tokens, self.head) for _ in range(2)]
                for _ in range(self.layers)]
        return lambda: [F.scaled_dot_product_attention(q, k, v, is_causal=tokens > 1, enable_gqa=True) for k, v in kept]

    def norms(self, tokens):
        weights = [m.weight for m in self.hf.modules() if type(m).__name__.endswith("RMSNorm")]
        x = {n: self.random(tokens * (1 if n == self.width else self.heads), n) for n in {w.numel() for w in weights}}
        return weights and (lambda: [F.rms_norm(x[w.numel()], w.shape, w, 1e-6) for w in weights])

    def rope(self, tokens):
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
        q, k = self.random(1, self.heads, tokens, self.head), self.random(1, self.key_heads, tokens, self.head)
        cos, sin = self.random(1, tokens, self.head), self.random(1, tokens, self.head)
        return hasattr(self.hf.model,
                       "rotary_emb") and (lambda: [apply_rotary_pos_emb(q, k, cos, sin) for _ in range(self.layers)])

    def operations(self, tokens, behind):
        """By the names that bench_gpu has for them; those that the model lacks are left out."""
        x, y = self.random(tokens, self.width), self.random(tokens, self.width)
        inner = self.config.intermediate_size
        gate, up = self.random(tokens, inner), self.random(tokens, inner)
        embedding, ids = self.hf.get_input_embeddings().weight, self.ids(tokens)[0]
        for name, make in {
            "embed": lambda: lambda: F.embedding(ids, embedding),
            "rms_norm": lambda: self.norms(tokens),
            "linear": lambda: self.linears(tokens),
            "rope": lambda: self.rope(tokens),
            "attention": lambda: self.attention(tokens, behind),
            "gated": lambda: lambda: [F.silu(gate) * up for _ in range(self.layers)],
            "add": lambda: lambda: [x + y for _ in range(2 * self.layers)],
        }.items():
            def measure():
                work = make()
                if not work:
                    raise LookupError("the model has none")
                return self.clock.rounds(self.clock.graph(work))
            row = self.row(name, tokens, behind, measure)
            yield {"operation": row.pop("way"), **row}


def limits(o):
    """What the device can do: the best of the rounds of a copy and of a product, both larger than its caches."""
    clock, cuda = Clock(o.device, max(o.repeat, 5)), o.device == "cuda"
    n, size = (8192, 1 << 31) if cuda else (1024, 1 << 26)
    a, b = (torch.randn(n, n, device=o.device, dtype=KINDS[o.precision]) for _ in range(2))
    to = torch.empty_like(a)
    product = min(clock.rounds(lambda: torch.matmul(a, b, out=to)))
    x = torch.zeros(size // 4, device=o.device)
    y = torch.empty_like(x)
    copy = min(clock.rounds(lambda: y.copy_(x)))
    return {"matmul": n, "tflop_s": 2e-9 * n ** 3 / product, "copied_gb": size / 1e9, "gb_s": 2e-6 * size / copy}


def load(o):
    from safetensors import safe_open
    taken = []
    for _ in range(o.repeat):
        start, kept = time.perf_counter(), []
        for path in glob.glob(os.path.join(o.model, "*.safetensors")):
            with safe_open(path, "pt", device=o.device) as f:
                kept += [f.get_tensor(name).to(KINDS[o.precision]) for name in f.keys()]
        if o.device == "cuda":
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
        del kept
    return taken


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("--what", type=lambda x: x.split(","), default=["pass"])
    p.add_argument("--precision", choices=KINDS, default="f16")
    p.add_argument("--tokens", type=lambda x: [int(n) for n in x.split(",")], default=[128, 512, 2048])
    p.add_argument("--repeat", type=int, default=5)
    p.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    p.add_argument("--threads", type=int)
    o = p.parse_args()
    if o.device == "cuda" and not torch.cuda.is_available():
        sys.exit("this torch sees no CUDA device")
    if o.threads:
        torch.set_num_threads(o.threads)
    said = {"torch": torch.__version__, "device": torch.cuda.get_device_name() if o.device == "cuda" else "CPU",
            "precision": o.precision}
    with torch.no_grad():
        if "limits" in o.what:
            said["limits"] = limits(o)
        if "load" in o.what:
            said["load_s"] = load(o)
        if {"pass", "next", "operations"} & set(o.what):
            m = Model(o)
            said["passes"] = [row for n in o.tokens for f, what in ((m.passes, "pass"), (m.next, "next"))
                              if what in o.what for row in f(n)]
            said["operations"] = [row for n in o.tokens if "operations" in o.what for at in ((n, 0), (1, n))
                                  for row in m.operations(*at)]
    json.dump(said, sys.stdout, indent=1)


if __name__ == "__main__":
    sys.exit(main())
