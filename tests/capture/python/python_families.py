#!/usr/bin/env python3
"""python_families.py [--write] VERNIER: what is said of transformers' modules is what the program's plans say.

    capture/python/vernier_parity/families.json   the checkpoints of each family and, where a module of transformers
                                                  takes or returns one, that module
    specs/names/hf.yaml                           between two marks, the same as rules: module, checkpoint

All comes from the plan that VERNIER records of each trained fixture, and of tiny models of families that have none
(FURTHER). A weight "model.layers.0.mlp.up_proj.weight" is
that of the module mlp.up_proj of a layer: what its operation makes is what the module returns, and what an operation
with a weight reads, its module takes. --write prints both.
"""
import glob
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

try:
    import h5py
except ImportError:
    print("skipped: no h5py")
    sys.exit(77)

TESTS = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(TESTS, "..", "..", "..", "fixtures")
PACKAGE = os.path.join(TESTS, "..", "..", "..", "capture", "python")
PAGE = os.path.join(PACKAGE, "vernier_parity", "families.json")
MAP = os.path.join(TESTS, "..", "..", "..", "specs", "names", "hf.yaml")
PLAIN = "llama-"  # of the family whose rows most others have, too
FROM, TO = "  # Printed from the plans of the families: not to be edited.\n", "  # To here.\n"
HAS_MODULE = ("embed", "positions", "linear", "rms_norm", "layer_norm", "gated_norm")
# Modules without a weight: of an activation, of the rest act_fn beside gate_proj; of a sum before
# the layers.
ACTIVATIONS, SUMS = {"gpt2": "mlp.act"}, {"gpt2": "drop"}
WEIGHT = re.compile(r"(?:model|transformer)\.(?:(?:layers|h)\.(\d+)\.)?(.+)\.weight")
# Families without a trained fixture, and their weights: in the last place those of a layer, or of
# each layer.
GEMMA3 = {"model_type": "gemma3_text", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 12, "head_dim": 4,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "sliding_window_pattern": 2}
FURTHER = {"gemma3_text": (GEMMA3, {"model.embed_tokens": (10, 8), "model.norm": (8,)}, {
    "input_layernorm": (8,), "post_attention_layernorm": (8,), "pre_feedforward_layernorm": (8,),
    "post_feedforward_layernorm": (8,), "self_attn.q_proj": (8, 8), "self_attn.k_proj": (4, 8),
    "self_attn.v_proj": (4, 8), "self_attn.o_proj": (8, 8), "self_attn.q_norm": (4,), "self_attn.k_norm": (4,),
    "mlp.gate_proj": (12, 8), "mlp.up_proj": (12, 8), "mlp.down_proj": (8, 12)})}
AROUND = {"input_layernorm": (8,), "post_attention_layernorm": (8,)}
ATTENTION = {**AROUND, "self_attn.q_proj": (8, 8), "self_attn.k_proj": (4, 8), "self_attn.v_proj": (4, 8),
             "self_attn.o_proj": (8, 8)}
GATED = {**AROUND, "self_attn.q_proj": (32, 8), "self_attn.k_proj": (8, 8), "self_attn.v_proj": (8, 8),
         "self_attn.o_proj": (8, 16), "self_attn.q_norm": (8,), "self_attn.k_norm": (8,)}
NORMS = {"self_attn.q_norm": (4,), "self_attn.k_norm": (4,)}
DENSE = {"mlp.gate_proj": (12, 8), "mlp.up_proj": (12, 8), "mlp.down_proj": (8, 12)}
ROUTED = {"mlp.gate": (2, 8), "mlp.experts.gate_up_proj": (2, 24, 8), "mlp.experts.down_proj": (2, 8, 12)}
OSS = {**{f"self_attn.{x}_proj.bias": (n,) for x, n in zip("qkvo", (8, 4, 4, 8))}, "self_attn.sinks": (2,),
       "mlp.router": (2, 8), "mlp.router.bias": (2,), "mlp.experts.gate_up_proj": (2, 8, 24),
       "mlp.experts.gate_up_proj_bias": (2, 24), "mlp.experts.down_proj": (2, 12, 8),
       "mlp.experts.down_proj_bias": (2, 8)}
SHARED = {**{f"mlp.shared_expert.{x}": DENSE[f"mlp.{x}"] for x in ("gate_proj", "up_proj", "down_proj")},
          "mlp.shared_expert_gate": (1, 8)}
DELTA = {**AROUND, **{f"linear_attn.{name}": shape for name, shape in {
    "in_proj_qkv": (12, 8), "in_proj_z": (4, 8), "in_proj_b": (1, 8), "in_proj_a": (1, 8), "conv1d": (12, 1, 2),
    "A_log": (1,), "dt_bias": (1,), "norm": (4,), "out_proj": (8, 4)}.items()}}
HYBRID = {"linear_num_key_heads": 1, "linear_num_value_heads": 1, "linear_key_head_dim": 4,
          "linear_value_head_dim": 4, "linear_conv_kernel_dim": 2, "layer_types": ["linear_attention",
          "full_attention"], "moe_intermediate_size": 12, "shared_expert_intermediate_size": 12, "head_dim": 8}


LATENT = ("deepseek_v2", "deepseek_v3")  # functions record the parts that no module makes
LATENT_PARTS = ("kv_latent", "k_pe", "kv_b_proj", "k_nope", "v_proj")
MLA = {**AROUND, **{f"self_attn.{name}": shape for name, shape in {
    "q_a_proj": (4, 8), "q_a_layernorm": (4,), "q_b_proj": (12, 4), "kv_a_proj_with_mqa": (6, 8),
    "kv_a_layernorm": (4,), "kv_b_proj": (16, 4), "o_proj": (8, 8)}.items()}}
SHARERS = {f"mlp.shared_experts.{x}": DENSE[f"mlp.{x}"] for x in ("gate_proj", "up_proj", "down_proj")}
SIZES = {"q_lora_rank": 4, "kv_lora_rank": 4, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "v_head_dim": 4,
         "n_routed_experts": 2, "n_shared_experts": 1, "moe_intermediate_size": 12, "first_k_dense_replace": 1,
         "num_key_value_heads": 2, "n_group": 1, "topk_group": 1, "head_dim": 2}


def of_experts(family, layer, **more):
    """A row of FURTHER."""
    config = {"model_type": family, "vocab_size": 10, "hidden_size": 8, "intermediate_size": 12, "head_dim": 4,
              "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "num_experts_per_tok": 1,
              "num_local_experts" if family in ("mixtral", "gpt_oss") else "num_experts": 2, **more}
    return config, {"model.embed_tokens": (10, 8), "model.norm": (8,), "lm_head": (10, 8)}, layer


EXPERTS = {
    "mixtral": of_experts("mixtral", {**ATTENTION, **ROUTED}),
    "olmoe": of_experts("olmoe", {**ATTENTION, **ROUTED, "self_attn.q_norm": (8,), "self_attn.k_norm": (4,)}),
    "qwen3_moe": of_experts("qwen3_moe", [{**ATTENTION, **NORMS, **ROUTED}, {**ATTENTION, **NORMS, **DENSE}],
                            moe_intermediate_size=12, mlp_only_layers=[1]),
    "gpt_oss": of_experts("gpt_oss", {**ATTENTION, **OSS}),
    "qwen3_5_moe_text": of_experts("qwen3_5_moe_text", [{**of, **ROUTED, **SHARED} for of in (DELTA, GATED)],
                                   **HYBRID),
    **{family: of_experts(family, [{**MLA, **DENSE}, {**MLA, **ROUTED, **SHARERS, **bias}], **SIZES)
       for family, bias in zip(LATENT, ({}, {"mlp.gate.e_score_correction_bias": (2,)}))}}
FURTHER.update(EXPERTS)
NAKED = re.compile(r".*(bias|sinks|A_log|mlp\.experts\.\w+)")  # weights whose names do not end in .weight
HEADS_FIRST = ("gemma3_text",)  # their norms of heads return heads before tokens

def plan_of(vernier, model):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "a.h5")
        subprocess.run([vernier, "capture", "ref", model, "--ids", "1,2", "-o", path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with h5py.File(path, "r") as f:
            return ([json.loads(x) for x in f["plan/nodes"][()]], [json.loads(x) for x in f["plan/values"][()]])


def module_of(node, layer):
    """The module of a node, below a layer, or below the body (layer -1); None: it has none."""
    found = WEIGHT.fullmatch(node["weights"][0]) if node["op"] in HAS_MODULE and node["weights"] else None
    if not found:
        return None
    return found[2] if int(found[1] or -1) == layer else None


def routed_place(value, maker, root):
    """The same of what routers and experts make; None: it is something else."""
    op, before = maker["op"], root[maker["in"][0]]["maker"] if maker["in"] else {}
    if op == "top_k" or op == "route":
        return module_of(before, value["layer"]), "2" if op == "top_k" else "1", None
    if op == "experts" or op == "combine" and before["op"] == "experts":
        return "mlp.experts", "each" if op == "experts" else "out", None
    return ("mlp", "out", None) if value["point"] == "moe_out" else None


def place_of(value, family, maker, readers, root):
    """(module, how, part) of a value."""
    layer, op, name = value["layer"], maker["op"], value["name"]
    own = module_of(maker, layer)
    if family in HEADS_FIRST and value["point"] in ("q_norm", "k_norm"):
        return own, "heads", None
    if value["point"] == "output":
        return "", "out", None
    if layer < 0 and value["basis"] == "vocab":
        return "lm_head", "out", None
    if family in LATENT and value["point"] in LATENT_PARTS:
        return None, "out", None
    if family in LATENT and op in ("top_k", "route"):  # which not every release's router returns
        return "mlp.experts", "in1" if op == "top_k" else "in2", None
    routed = routed_place(value, maker, root)
    if routed:
        return routed
    if own:
        scaled = op == "embed" and any(n["op"] == "scale" for n in readers[name])
        return own, "rows" if scaled else "out", None
    if op == "act" and value["basis"] == "ffn":
        gate = module_of(root[maker["in"][0]]["maker"], layer)
        return ACTIVATIONS.get(family, os.path.splitext(gate)[0] + ".act_fn"), "out", None
    if op == "add" and layer < 0:
        return SUMS[family], "out", None
    if op == "scale":  # transformers' embedding does it itself
        return module_of(root[maker["in"][0]]["maker"], layer), "out", None
    if op == "slice":
        before = root[maker["in"][0]]
        c, width = maker["const"], before["width"]
        module = module_of(before["maker"], layer)
        return module, "out", (c["from"] // c["width"], c["stride"] // c["width"], c["stride"] < width)
    for reader in readers[name]:
        module = module_of(reader, layer)
        if module:
            return module, "in", None
    return None, "out", None


def rows_of(family, nodes, values):
    """(layer, row) of each value."""
    makers = {name: n for n in nodes for name in n["out"] if name}
    readers = {v["name"]: [n for n in nodes if v["name"] in n["in"]] for v in values}
    root = {}
    for v in values:
        sizes = [x for x in v["sizes"] if isinstance(x, int)]
        width = 1
        for x in sizes:
            width *= x
        root[v["name"]] = {"maker": makers.get(v["alias_of"] or v["name"]), "width": width}
    for v in values:
        maker = root[v["name"]]["maker"]
        module, how, part = (None, "out", None) if v["alias_of"] else place_of(v, family, maker, readers, root)
        more = {"on_demand": v["on_demand"], "module": module, "how": how if module is not None else "out",
                "part": part if module is not None else None}
        usual = {"on_demand": False, "module": None, "how": "out", "part": None}
        yield v["layer"], [v["point"], v["axes"], v["basis"], "" if v["alias_of"] else maker["op"],
                           {k: more[k] for k in usual if more[k] != usual[k]}]


def write_further(family, directory):
    """A tiny model of this family, of zeros."""
    config, weights, layer = FURTHER[family]
    layers = layer if isinstance(layer, list) else [layer] * config["num_hidden_layers"]
    weights = {**weights, **{f"model.layers.{n}.{name}": shape for n, of in enumerate(layers)
                             for name, shape in of.items()}}
    header, at = {}, 0
    for name, shape in weights.items():
        size = 4
        for n in shape:
            size *= n
        full = name if NAKED.fullmatch(name) else name + ".weight"
        header[full] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(directory)
    with open(os.path.join(directory, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    with open(os.path.join(directory, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + bytes(at))
    return directory


def family_of(vernier, directory):
    with open(os.path.join(directory, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    family, kinds = config["model_type"], config.get("layer_types")
    rows = list(rows_of(family, *plan_of(vernier, directory)))
    first = next(i for i, (layer, _) in enumerate(rows) if layer >= 0)
    last = max(i for i, (layer, _) in enumerate(rows) if layer >= 0)
    layers = {}
    for layer, row in rows[first:last + 1]:
        layers.setdefault(layer, []).append(row)
    every = list(layers.values())
    alike = all(x == every[0] for x in every)
    routed = [any("experts" in row for row in x) for x in every]
    if any(routed) and not all(routed):
        kinds = ["experts" if x else "dense" for x in routed]
    return family, [r for _, r in rows[:first]], ({"": every[0]} if alike else dict(zip(kinds, every))), \
        [r for _, r in rows[last + 1:]]


def as_list(rows, known):
    """A list of rows; runs of rows that a list before it has, too, are taken from that: [LIST, FIRST, END]."""
    made, at = [], 0
    while at < len(rows):
        size, name, first = max(((run_of(rows[at:], of[i:]), name, i) for name, of in known.items()
                                 for i in range(len(of))), key=lambda x: x[0], default=(0, "", 0))
        made.append([name, first, first + size] if size > 2 else rows[at])
        at += size if size > 2 else 1
    return made


def run_of(a, b):
    """With how many equal rows two lists begin."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def table(vernier):
    lists, known, families = {}, {}, {}

    def name_of(rows, wanted):
        found = next((k for k in known if known[k] == rows), None)
        if not found:
            lists[wanted] = as_list(rows, known)
            known[wanted] = rows
        return found or wanted

    found = [family_of(vernier, directory) for directory in
             sorted(glob.glob(os.path.join(FIXTURES, "*-trained")), key=lambda d: (PLAIN not in d, d))]
    with tempfile.TemporaryDirectory() as d:
        found += [family_of(vernier, write_further(family, os.path.join(d, family))) for family in FURTHER]
    for family, before, layer, behind in found:
        names = {kind: name_of(rows, f"{family} {kind}".strip()) for kind, rows in layer.items()}
        families[family] = [name_of(before, f"before {family}"), names, name_of(behind, f"behind {family}")]
    of_lists = ",\n".join(f"{json.dumps(k)}: [\n " + ",\n ".join(map(json.dumps, x)) + "]" for k, x in lists.items())
    of_families = ",\n".join(f"{json.dumps(k)}: {json.dumps(x)}" for k, x in sorted(families.items()))
    return f'{{"lists": {{\n{of_lists}}},\n"families": {{\n{of_families}}}}}\n'


def package():
    """The package's table, as it is in the tree."""
    sys.path.insert(0, PACKAGE)
    from vernier_parity.families import FAMILIES
    return {name: rows for name, rows in FAMILIES.items() if name + "_text" not in FAMILIES}


def axes_of(row):
    """The axes of what the module takes or returns, batch first."""
    token, _, rest = row.axes.partition(" ")
    if row.how == "heads":
        return f"batch {rest.split()[0]} {token} {rest.split()[1]}"
    if row.op in ("delta_rule", "gated_norm"):
        return f"(batch {token} {rest.split()[0]}) {rest.split()[1]}"
    joined = " " in rest and not row.op.endswith("norm")
    return f"batch {token} ({rest})" if joined else f"batch {token} {rest}"


def rules_of(name, family):
    """(module, what it becomes) of every checkpoint with one."""
    body, layers = ("transformer", "h") if name == "gpt2" else ("{model,model.language_model}", "layers")
    every = [(f"{body}.", "", row) for row in family.before]
    for rows in family.layer.values():
        yield f"{body}.{layers}.{{n}}.in", 'to: "layer{n}.input", axes: "batch token hidden"'
        every += [(f"{body}.{layers}.{{n}}.", "layer{n}.", row) for row in rows]
    every += [("" if row.module == "lm_head" else f"{body}.", "", row) for row in family.behind]
    halves = {}  # by module, the checkpoints that are parts of what it returns
    for _, prefix, row in every:
        if row.part and not row.part[2] and prefix + row.point not in halves.setdefault(row.module, []):
            halves[row.module].append(prefix + row.point)
    for before, prefix, row in every:
        if row.module is None or row.part or row.how == "rows" or (row.op == "scale" and row.basis == "vocab"):
            continue
        module = (before + row.module).rstrip(".") + (".in" if row.how == "in" else "" if row.module else "{,.0}")
        more = ""
        if row.how == "out" and row.module in halves:
            more = f', parts: [{", ".join(json.dumps(p) for p in halves[row.module])}], along: {row.axes.split()[1]}'
        yield module, f'to: "{prefix}{row.point}"{more}, axes: "{axes_of(row)}"'


def rules():
    """The printed part of hf.yaml. A rule names its families if the module is another checkpoint in others."""
    becomes = {}  # by module, the families of each result
    for name, family in package().items():
        if name in EXPERTS:  # their rules are written by hand
            continue
        for module, result in rules_of(name, family):
            of = becomes.setdefault(module, {}).setdefault(result, [])
            if name not in of:
                of.append(name)
    for module, results in becomes.items():  # of families that have the module, but whose input of it is no checkpoint
        others = {n for of in becomes.get(module[:-3], {}).values() for n in of} if module.endswith(".in") else set()
        unused = sorted(others - {n for of in results.values() for n in of})
        if unused:
            results["ignore: true"] = unused
    text = ""
    for module, results in becomes.items():
        usual = max(results, key=lambda r: len(results[r]))
        for result in sorted(results, key=lambda r: r == usual):
            kinds = [n.replace("_text", "*") for n in results[result]]
            which = kinds[0] if len(kinds) == 1 else "{" + ",".join(kinds) + "}"
            family = "" if result == usual else f'family: "{which}", '
            line = f'  - {{ from: "{module}", {family}{result} }}\n'
            if len(line) > 121:
                wrapped = result.replace("], along", "],\n      along")
                line = f'  - {{ from: "{module}",\n      {family}{wrapped} }}\n'
            text += line
    return text


def as_printed(path, want, write):
    """Whether a file is as it is to be; its first line that is not is told."""
    with open(path, encoding="utf-8") as f:
        have = f.read()
    if path == MAP:
        front, behind = have.index(FROM) + len(FROM), have.index(TO)
        want = have[:front] + want + have[behind:]
    if write:
        with open(path, "w", encoding="utf-8") as f:
            f.write(want)
    elif have != want:
        lines = [(a, b) for a, b in zip(have.splitlines(), want.splitlines()) if a != b]
        print(f"{os.path.basename(path)} is not what the plans say",
              *(f"{k} {x}" for k, x in zip("-+", (lines or [""])[0])), sep="\n")
    return write or have == want


def main():
    write, vernier = sys.argv[1] == "--write", sys.argv[-1]
    good = as_printed(PAGE, table(vernier), write)
    good = as_printed(MAP, rules(), write) and good
    print("families.json and hf.yaml have what the program's plans say" if good
          else f"write them anew: tests/capture/python/python_families.py --write {vernier}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
