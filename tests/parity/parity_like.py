"""parity_like.py VERNIER [--short]: `vernier import --like`: names proposed by the numbers.

Dumps of transformers' modules, made with PyTorch's hooks, under the modules' names and under names that say nothing,
in several layouts, of the trained fixtures and of deeper random models. A correct run: at least 95 % of the tensors
that have a counterpart are mapped, and none to a checkpoint whose numbers it does not have; both are decided here by
the numbers of the reference alone, as sorted lists. Planted exchanges (k and v; the layer before; heads in another
order; the step before): each is found, by import's own report, or by compare of what import wrote, with that tensor as
an origin. Faulty runs (eps, RoPE's theta, a bias dropped, in one layer or all): no name is mapped otherwise than in
the correct run, and at most one in fifty of the checkpoints of names that say what they are is left without a tensor.
Layers stacked in one array: split by a proposed rule.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

import needs_transformers  # noqa: F401
import h5py
import numpy as np
import torch
import transformers

transformers.utils.logging.disable_progress_bar()
import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "..", "fixtures")
vernier = os.path.abspath(sys.argv[1])
short = "--short" in sys.argv
FAMILIES = ("llama", "qwen3") if short else ("llama", "qwen3", "gpt2", "qwen3_5_text", "qwen2", "mistral")
TOKENS = 21
torch.set_num_threads(1)
rng = np.random.default_rng(5)


def run(*args):
    return subprocess.run([vernier, *args], capture_output=True, text=True)


# ---- models and dumps --------------------------------------------------------------------------

def deeper(folder, family, layers):
    """A random model of the same shape with more layers, in a folder of its own."""
    src, to = os.path.join(FIXTURES, f"{family}-trained"), os.path.join(folder, f"{family}-{layers}")
    config = transformers.AutoConfig.from_pretrained(src)
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = (config.layer_types * layers)[:layers]
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(config).to(torch.float32)
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim == 1:
                p.add_(0.3 * torch.randn_like(p))
            else:
                p.mul_(3)
    model.save_pretrained(to)
    return to


def calls_of(model_dir, ids, decode=0, fault=None, dtype=torch.float32):
    """[{name: array}] of each call: what every module returns, and what some are given."""
    model = transformers.AutoModelForCausalLM.from_pretrained(model_dir, dtype=dtype,
                                                              attn_implementation="eager").eval()
    if fault:
        fault(model)
    calls = []

    def keep(name, x):
        if isinstance(x, (tuple, list)):
            for k, one in enumerate(x):
                keep(f"{name}.{k}", one)
        elif isinstance(x, torch.Tensor) and x.is_floating_point() and name not in calls[-1]:
            calls[-1][name] = x.detach().to(torch.float32).clone().numpy()

    for name, module in model.named_modules():
        if name and not name.endswith("rotary_emb"):
            module.register_forward_hook(lambda m, i, out, name=name: keep(name, out))
            module.register_forward_pre_hook(lambda m, i, name=name: keep(name + ".in", i[0]) if i else None)
    source = sys.modules[type(model).__module__]
    rotate = getattr(source, "apply_rotary_pos_emb", None)
    layer = [0]

    def rotated(*a, **k):
        q, kk = rotate(*a, **k)
        keep(f"rotated.{layer[0]}.query", q)
        keep(f"rotated.{layer[0]}.key", kk)
        layer[0] += 1
        return q, kk

    if rotate:
        source.apply_rotary_pos_emb = rotated
    try:
        with torch.no_grad():
            calls.append({})
            out = model(torch.tensor([ids[:len(ids) - decode]]), use_cache=True)
            for k in range(decode):
                calls.append({})
                layer[0] = 0
                at = len(ids) - decode + k
                out = model(torch.tensor([ids[at:at + 1]]), past_key_values=out.past_key_values, use_cache=True)
    finally:
        if rotate:
            source.apply_rotary_pos_emb = rotate
    return calls


def opaque(names):
    """Names that say the layer only, in the order of execution: net/block3/t07:0."""
    table, count = {}, {}
    for name in names:
        m = re.search(r"\.(\d+)(\.|$)", name)
        n = int(m[1]) if m else None
        rest = name if m is None else name[:m.start()] + name[m.end():]
        which = count.setdefault(rest, len(count))
        table[name] = f"net/t{which:02}:0" if n is None else f"net/block{n + 1}/t{which:02}:0"
    return table


def laid_out(calls, scheme, truth_heads):
    """The calls under other names and in another layout."""
    if scheme == "modules":
        return calls, {n: n for n in calls[0]}
    table = opaque(calls[0])
    made = []
    for c in calls:
        made.append({})
        for name, a in c.items():
            h = truth_heads.get(name.split(".")[-1])
            if h and a.ndim == 3 and a.shape[2] % h == 0:  # heads first
                a = a.reshape(a.shape[0], a.shape[1], h, -1).transpose(0, 2, 1, 3)
            elif a.ndim == 3:
                a = a[0]
            made[-1][table[name]] = np.ascontiguousarray(a)
    return made, table


def save(path, calls):
    np.savez(path, **{(f"step.{k}/" if k else "") + n: a for k, c in enumerate(calls) for n, a in c.items()})


# ---- truth -------------------------------------------------------------------------------------

def read_reference(path):
    found = {}
    with h5py.File(path) as f:
        for n, d in f["step.0"].items():  # visititems shows a hard link once
            for k, one in d.items() if isinstance(d, h5py.Group) else [("", d)]:
                found[f"{n}.{k}" if k else n] = one[...]
    return {n: np.sort(a, axis=None).astype(np.float64) for n, a in found.items()}


def same(a, b, error=1e-4):
    return a.size == b.size and np.sqrt(((a - b) ** 2).mean()) <= error * np.sqrt((b * b).mean())


def targets_of(rules, name):
    """The checkpoints that a map makes of a name: [] if none."""
    plain = re.sub(r"^/+", "", name).replace("/", ".")
    for r in rules:
        pattern = re.escape(r["from"]).replace(r"\{n\}", r"(\d+)").replace(r"\?", ".")
        m = re.fullmatch(pattern, plain)
        if m:
            if r.get("ignore"):
                return []
            n = int(m[1]) if m.groups() else None
            def layer(t):
                return re.sub(r"\{n([-+]\d+)?\}", lambda k: str(n + int(k[1] or 0)), t)
            return [layer(t) for t in r.get("parts", [r.get("to")])]
    return []


def read_map(path):
    with open(path, encoding="utf-8") as f:
        return yaml.safe_load(f)["rules"] or []


# ---- the two directions ------------------------------------------------------------------------

class Case:
    def __init__(self, folder, family, model, scheme, decode=0):
        self.folder, self.family, self.model, self.scheme, self.decode = folder, family, model, scheme, decode
        config = transformers.AutoConfig.from_pretrained(model)
        vocab = config.vocab_size
        self.ids = [int(i) for i in np.random.default_rng(len(family)).integers(3, vocab, TOKENS)]
        self.layers = config.num_hidden_layers
        heads = getattr(config, "num_attention_heads", None)
        self.heads = {} if family in ("gpt2", "qwen3_5_text") else {
            "q_proj": heads, "k_proj": config.num_key_value_heads, "v_proj": config.num_key_value_heads}
        self.n_heads = heads
        self.name = f"{os.path.basename(model)} {scheme}" + (f" +{decode}" if decode else "")
        self.ref = os.path.join(folder, f"{self.name.replace(' ', '_')}.h5")
        ids = ",".join(map(str, self.ids))
        if decode:
            with open(self.ref + ".ids", "w", encoding="utf-8") as f:
                f.write(ids)
            prompt, forced = ids.split(",")[:-decode], ids.split(",")[-decode:]
            r = run("capture", "ref", model, "--ids", ",".join(prompt), "--points", "*",
                    "--force-ids", ",".join(forced), "-o", self.ref, "--force")
        else:
            r = run("capture", "ref", model, "--ids", ids, "--points", "*", "-o", self.ref, "--force")
        if r.returncode:
            sys.exit(f"{self.name}: {r.stderr}")
        self.calls = calls_of(model, self.ids, decode)
        self.table = laid_out(self.calls, scheme, self.heads)[1]

    def imported(self, calls, what="dump"):
        made, _ = laid_out(calls, self.scheme, self.heads)
        at = os.path.join(self.folder, what)
        save(at + ".npz", made)
        r = run("import", at + ".npz", "--like", self.ref, "--write-map", at + ".yaml", "-o", at + ".h5", "--force",
                "--model", self.model)
        if r.returncode:
            print(f"BAD  {self.name}: import: {r.stderr}")
            return None, r
        return read_map(at + ".yaml"), r

    def healthy(self, calls, error=1e-4):
        rules, r = self.imported(calls)
        if rules is None:
            return 0, 0, 1
        ref = read_reference(self.ref)
        right = have = wrong = 0
        for name, a in calls[0].items():
            mine = np.sort(a, axis=None).astype(np.float64)
            fits = {n for n, b in ref.items() if same(mine, b, error)}
            targets = targets_of(rules, self.table[name])
            if len(targets) > 1:
                whole = np.sort(np.concatenate([ref[t] for t in targets]))
                good = same(mine, whole, error)
                fits = fits or ({"parts"} if good else set())
            else:
                good = bool(targets) and targets[0] in fits
            have += bool(fits)
            right += bool(fits) and good
            if targets and not good:
                wrong += 1
                print(f"     wrong: {self.table[name]} ({name}) -> {targets}")
            elif fits and not good:
                print(f"     not mapped: {self.table[name]} ({name}), which is {sorted(fits)[:2]}")
        if "contradiction" in r.stdout:
            wrong += 1
            print("     reported in a correct run:", [x for x in r.stdout.splitlines() if "contradiction" in x])
        return right, have, wrong

    def stacked(self):
        """What all layers have, in one array each; of heads-first queries too. Returns (right, have)."""
        by = {}
        for name, a in self.calls[0].items():
            m = re.search(r"^(?:model\.layers|transformer\.h|rotated)\.(\d+)\.(.*)$", name)
            if m:
                by.setdefault(m[2], {})[int(m[1])] = a
        whole = {k: np.stack([v[n] for n in range(self.layers)]) for k, v in by.items() if len(v) == self.layers}
        at = os.path.join(self.folder, "stacked")
        np.savez(at + ".npz", **whole)
        r = run("import", at + ".npz", "--like", self.ref, "--write-map", at + ".yaml", "-o", at + ".h5", "--force",
                "--model", self.model)
        if r.returncode:
            print(f"BAD  {self.name}: stacked: {r.stderr}")
            return 0, 1
        rules = read_map(at + ".yaml")
        ref = read_reference(self.ref)
        right = have = 0
        for name, a in whole.items():
            mine = [np.sort(x, axis=None).astype(np.float64) for x in a]
            points = {n.split(".", 1)[1] for n, b in ref.items() if n.startswith("layer0.") and same(mine[0], b)}
            points = {p for p in points if all(f"layer{n}.{p}" in ref and same(x, ref[f"layer{n}.{p}"])
                                               for n, x in enumerate(mine))}
            good = any(r.get("each") == "layer" and r.get("to", "").replace("layer{n}.", "") in points for r in rules)
            have += bool(points)
            right += bool(points) and good
            if points and not good:
                print(f"     stacked, not mapped: {name}, which is {sorted(points)[:2]}")
        return right, have

    def planted(self, what, calls, names, points):
        """Is this exchange found? names: of the tensors changed; points: checkpoints that they are."""
        rules, r = self.imported(calls, "planted")
        if rules is None:
            return False
        lines = [x for x in r.stdout.splitlines() if x.startswith("contradiction")]
        plain = [self.table[n].replace("/", ".") for n in names]
        families = [re.sub(r"\d+", "{n}", p, count=1) for p in plain]
        if any(p in line or f in line for line in lines for p, f in zip(plain, families)):
            return True
        c = run("compare", self.ref, os.path.join(self.folder, "planted.h5"), "--model", self.model, "--allow",
                "missing", "--format", "json")
        if c.returncode == 2:
            print(f"     {what}: compare: {c.stderr[:300]}")
            return False
        j = json.loads(c.stdout)
        origins = set(j["origins"]) | {j["first_divergence"]}
        if j["verdict"] == "outside" and origins & set(points):
            return True
        print(f"     hidden: {self.name}: {what}: {j['verdict']}, origins {sorted(map(str, origins))[:4]}, "
              f"planted in {points}")
        return False


def copied(calls):
    return [dict(c) for c in calls]


def permute_heads(a, heads):
    b = a.reshape(*a.shape[:-1], heads, -1)
    return np.ascontiguousarray(b[..., np.roll(np.arange(heads), 1), :].reshape(a.shape))


def plantings(case):
    """(what, calls, names, points) of each exchange that this case can have."""
    names = list(case.calls[0])
    layer = re.compile(r"^(model\.layers|transformer\.h|rotated)\.(\d+)\.(.*)$")
    by = {}
    for n in names:
        m = layer.match(n)
        if m:
            by.setdefault(m[3], {})[int(m[2])] = n
    point = {"self_attn.k_proj": "k_proj", "self_attn.v_proj": "v_proj", "self_attn.q_proj": "q_proj",
             "self_attn.o_proj.in": "attn_context", "input_layernorm": "attn_norm", "mlp.gate_proj": "gate_proj",
             "mlp.up_proj": "up_proj", "mlp.down_proj.in": "mlp_act", "query": "q_rope", "key": "k_rope",
             "post_attention_layernorm": "mlp_norm", "ln_1": "attn_norm", "ln_2": "mlp_norm",
             "mlp.c_fc": "up_proj", "attn.c_proj.in": "attn_context"}
    last = case.layers - 1

    def exchange(a, b, layers):
        calls = copied(case.calls)
        for n in layers:
            x, y = by[a][n], by[b][n]
            for c in calls:
                c[x], c[y] = c[y], c[x]
        return (f"{a} <-> {b} in {layers}", calls, [by[k][n] for k in (a, b) for n in layers],
                [f"layer{n}.{point[k]}" for k in (a, b) for n in layers])

    def before(a, layers):
        calls = copied(case.calls)
        for n in reversed(layers):
            for c, own in zip(calls, case.calls):
                c[by[a][n]] = own[by[a][n - 1]]
        return (f"{a} of the layer before in {layers}", calls, [by[a][n] for n in layers],
                [f"layer{n}.{point[a]}" for n in layers])

    def heads(a, layers):
        calls = copied(case.calls)
        for n in layers:
            for c in calls:
                c[by[a][n]] = permute_heads(c[by[a][n]], case.n_heads)
        return (f"heads of {a} permuted in {layers}", calls, [by[a][n] for n in layers],
                [f"layer{n}.{point[a]}" for n in layers])

    def step(a, n, s):
        calls = copied(case.calls)
        calls[s][by[a][n]] = case.calls[s - 1][by[a][n]]
        return (f"{a} of layer {n} of step {s - 1} in step {s}", calls, [by[a][n]],
                [f"layer{n}.{point[a]}"])

    every = list(range(case.layers))
    for a, b in (("self_attn.k_proj", "self_attn.v_proj"), ("mlp.gate_proj", "mlp.up_proj")):
        if a in by and b in by and len(by[a]) == case.layers:
            yield exchange(a, b, [last])
            yield exchange(a, b, [0])
            if case.scheme == "modules":
                yield exchange(a, b, every)
                if case.layers > 2:
                    yield exchange(a, b, every[1:])
    for a in ("self_attn.v_proj", "mlp.up_proj", "input_layernorm", "query", "ln_1", "attn.c_proj.in", "mlp.c_fc"):
        if a in by and len(by[a]) == case.layers:
            yield before(a, [last])
            if case.layers > 2:
                yield before(a, every[1:])
    for a in ("self_attn.q_proj", "self_attn.o_proj.in", "attn.c_proj.in"):
        if a in by and len(by[a]) == case.layers and case.family != "qwen3_5_text":
            yield heads(a, [last])
            yield heads(a, every)
    if case.decode:
        for a in ("self_attn.v_proj", "mlp.up_proj", "ln_2", "attn.c_proj.in"):
            if a in by and len(by[a]) == case.layers:
                yield step(a, last, 2)
                yield step(a, 0, 3)


def faults(layers):
    def eps(model):
        for m in model.modules():
            if hasattr(m, "variance_epsilon"):
                m.variance_epsilon = 1e-2

    def bias(model):
        for n, p in model.named_parameters():
            if n.endswith("bias"):
                p.data.zero_()

    def one_norm(model):
        block = getattr(model, "model", None)
        if block is not None and hasattr(block, "layers"):
            block.layers[layers // 2].input_layernorm.weight.data.mul_(1.5)

    def o_weight(model):
        for n, p in model.named_parameters():
            if re.search(r"layers\.0\..*o_proj\.weight|h\.0\.attn\.c_proj\.weight", n):
                p.data.copy_(p.data.flip(0))

    return {"eps": eps, "biases dropped": bias, "a norm's weight": one_norm, "o_proj's rows reversed": o_weight}


def main():
    right = have = wrong = found = tried = other = fault_names = lost = said = unsaid = 0
    split = stacks = 0
    with tempfile.TemporaryDirectory() as folder:
        cases = []
        for family in FAMILIES:
            trained = os.path.join(FIXTURES, f"{family}-trained")
            cases += [(family, trained, "modules", 0), (family, trained, "opaque", 0)]
            if not short and family in ("llama", "qwen3"):
                cases += [(family, deeper(folder, family, 6), scheme, 0) for scheme in ("modules", "opaque")]
            if family in ("llama", "gpt2"):
                cases.append((family, trained, "modules", 4))
        for at in cases:
            case = Case(folder, *at)
            a, b, c = case.healthy(case.calls)
            right, have, wrong = right + a, have + b, wrong + c
            print(f"{'ok' if b and a >= 0.95 * b and not c else 'BAD':4} {case.name:32} {a} of {b} mapped, {c} wrong")
            if case.scheme == "modules" and not case.decode and case.layers > 1:
                a, b = case.stacked()
                split, stacks = split + a, stacks + b
            if not case.decode:  # the same run in bfloat16: far more noise, the same names
                a, b, c = case.healthy(calls_of(case.model, case.ids, dtype=torch.bfloat16), 0.05)
                right, have, wrong = right + a, have + b, wrong + c
                print(f"{'ok' if b and a >= 0.95 * b and not c else 'BAD':4} {case.name + ' bf16':32} "
                      f"{a} of {b} mapped, {c} wrong")
            for n, (what, calls, names, points) in enumerate(plantings(case)):
                if short and n % 4 != 1:
                    continue
                tried += 1
                found += case.planted(what, calls, names, points)
            if case.decode or short and case.scheme == "opaque":
                continue
            healthy, _ = case.imported(case.calls)
            for what, fault in faults(case.layers).items():
                rules, _ = case.imported(calls_of(case.model, case.ids, 0, fault), "faulty")
                if rules is None:
                    other += 1
                    continue
                if case.scheme == "modules":
                    reached = [{t for n in case.calls[0] for t in targets_of(x, case.table[n])}
                               for x in (healthy, rules)]
                    said += len(reached[0])
                    unsaid += len(reached[0] - reached[1])
                for name in case.calls[0]:
                    a, b = targets_of(healthy, case.table[name]), targets_of(rules, case.table[name])
                    fault_names += bool(a)
                    lost += bool(a) and not b
                    if a and not b and '-v' in sys.argv:
                        print(f"     {case.name}, {what}: {case.table[name]} is left out, in the correct run {a}")
                    if a != b and b and not (a and same_place(case, a, b)):
                        other += 1
                        print(f"     {case.name}, {what}: {case.table[name]} is {b}, in the correct run {a}")
    print(f"correct runs: {right} of {have} tensors with a counterpart mapped ({100 * right / max(have, 1):.1f} %), "
          f"{wrong} wrong")
    print(f"planted exchanges: {found} of {tried} found")
    print(f"faulty runs: {other} of {fault_names} names mapped otherwise than in the correct run, "
          f"{lost} left out")
    print(f"checkpoints of names that say what they are: {unsaid} of {said} without a tensor in a faulty run")
    print(f"stacked layers: {split} of {stacks} split")
    sys.exit(right < 0.95 * have or wrong or found < tried or other or unsaid > 0.02 * said or split < 0.9 * stacks)


def same_place(case, a, b):
    ref = read_reference(case.ref)
    return len(a) == len(b) and all(x in ref and y in ref and same(ref[x], ref[y]) for x, y in zip(a, b))


main()
