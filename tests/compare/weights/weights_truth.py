#!/usr/bin/env python3
"""weights_truth.py VERNIER [--seed N]: 200 arrangements, changes and quantisations of weights are planted; `vernier
weights` lists exactly the weights that were touched, and each sentence that it calls certain is true.

A sentence is not compared with the name of what was planted: what it states is done again with numpy, and must give the
candidate's numbers. So a sentence that names another change with the same result is right, and one that names nothing
must not deny what is there: "other numbers" of numbers that were only moved is false. Files of blocks are written by
the gguf package (fixtures/gguf_twins.py) and damaged byte by byte. Without that package those plants are left out.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from weights import as_format, ask, pairs, read_model, unpairs, values, write_model

HERE = os.path.dirname(os.path.abspath(__file__))
TWINS = os.path.join(HERE, "..", "..", "..", "fixtures", "gguf_twins.py")
H, G, K, LAYERS, WIDTH, FFN, VOCABULARY = 8, 2, 32, 4, 256, 512, 512
SHAPES = {"self_attn.q_proj": (H * K, WIDTH), "self_attn.k_proj": (G * K, WIDTH), "self_attn.v_proj": (G * K, WIDTH),
          "self_attn.o_proj": (WIDTH, H * K), "mlp.gate_proj": (FFN, WIDTH), "mlp.up_proj": (FFN, WIDTH),
          "mlp.down_proj": (WIDTH, FFN)}


def make_model(path, rng, word):
    os.makedirs(path)
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH,
                   "intermediate_size": FFN, "num_attention_heads": H, "num_key_value_heads": G, "head_dim": K,
                   "num_hidden_layers": LAYERS, "vocab_size": VOCABULARY, "rms_norm_eps": 1e-5, "rope_theta": 1e4,
                   "tie_word_embeddings": False, "max_position_embeddings": 512, "hidden_act": "silu",
                   "torch_dtype": "float32"}, f)
    source = path + "-config"
    shutil.copytree(path, source)
    os.remove(os.path.join(path, "config.json"))
    os.rmdir(path)
    m = {"model.embed_tokens.weight": (VOCABULARY, WIDTH), "lm_head.weight": (VOCABULARY, WIDTH),
         "model.norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        m |= {f"model.layers.{layer}.{n}.weight": s for n, s in SHAPES.items()}
        m |= {f"model.layers.{layer}.{n}_layernorm.weight": (WIDTH,) for n in ("input", "post_attention")}
    tensors = {n: as_format(1 + rng.normal(0, 0.1, s) if len(s) == 1 else
                            rng.standard_t(6, s) * rng.uniform(0.02, 0.06), word) for n, s in m.items()}
    write_model(source, path, tensors)
    return path, tensors


# ---- plants: (name, the part of the weights' names, f(stored array, rng)) ----------------------

def plant_heads(axis, width, how):
    def f(x, rng):
        n = x.shape[axis] // width
        if how == "transposed":
            a = int(rng.choice([a for a in range(2, n) if n % a == 0] or [1]))
            order = np.arange(n).reshape(a, n // a).T.reshape(-1)
        elif how == "rolled":
            order = np.roll(np.arange(n), int(rng.integers(1, n)))
        elif how == "two":
            order = np.arange(n)
            i, j = rng.choice(n, 2, replace=False)
            order[[i, j]] = order[[j, i]]
        else:
            order = rng.permutation(n)
        return np.concatenate([np.take(x, range(i * width, (i + 1) * width), axis) for i in order], axis)
    return f


def plant_pairs(x, rng):
    own, other = K, int(rng.choice([w for w in (4, 8, 16, 64) if len(x) % w == 0]))
    return [lambda y: unpairs(other)(pairs(own)(y)), lambda y: pairs(other)(unpairs(own)(y)), pairs(other),
            unpairs(other), pairs(own), unpairs(own)][int(rng.integers(6))](x)


def some_lines(axis):
    def f(x, rng):
        order = np.arange(x.shape[axis])
        some = rng.choice(len(order), int(rng.integers(2, len(order))), replace=False)
        order[some] = order[np.roll(some, 1)]
        return np.take(x, order, axis)
    return f


def shuffled(x, rng):
    return rng.permutation(x.reshape(-1)).reshape(x.shape)


def on_numbers(f):
    """On the numbers of a tensor (word, array), stored as before."""
    return lambda t, rng: as_format(f(values(t), rng), t[0])


def on_places(f):
    return lambda t, rng: (t[0], np.ascontiguousarray(f(t[1], rng)))


def one_row(x, rng):
    x = x.copy()
    x[int(rng.integers(len(x)))] *= 1.5
    return x


def moved_and_rounded(t, rng):
    return as_format(values((t[0], some_lines(0)(t[1], rng))), "BF16")


PLANTS = [("pairs", ("q_proj", "k_proj"), on_places(plant_pairs)),
          ("heads of columns, transposed", ("o_proj",), on_places(plant_heads(1, K, "transposed"))),
          ("heads of columns, two", ("o_proj",), on_places(plant_heads(1, K, "two"))),
          ("heads of rows", ("q_proj", "v_proj", "k_proj"), on_places(plant_heads(0, K, "random"))),
          ("half heads", ("v_proj", "q_proj"), on_places(plant_heads(0, K // 2, "random"))),
          ("blocks of columns", ("down_proj", "gate_proj"), on_places(plant_heads(1, 16, "rolled"))),
          ("rows", ("down_proj", "up_proj", "lm_head", "q_proj"), on_places(some_lines(0))),
          ("columns", ("down_proj", "o_proj", "embed_tokens"), on_places(some_lines(1))),
          ("all numbers", ("up_proj", "k_proj"), on_places(shuffled)),
          ("vector", ("input_layernorm",), on_places(some_lines(0))),
          ("one row", ("q_proj", "down_proj"), on_numbers(one_row)),
          ("noise", ("up_proj",), on_numbers(lambda x, rng: x + rng.normal(0, 0.01 * x.std(), x.shape))),
          ("scaled", ("o_proj", "norm.weight"), on_numbers(lambda x, rng: x * rng.choice([0.5, 1.1, 8.0]))),
          ("moved and rounded", ("gate_proj", "o_proj"), moved_and_rounded)]


# ---- is a sentence true? -----------------------------------------------------------------------

def order_of(words):
    return [int(i) for i in re.search(r"in the order ([\d, ]+)", words).group(1).split(",")]


def moved_lines(words, a, b):
    count, n, kind = re.match(r"(\d+) of its (\d+) (rows|columns) moved", words).groups()
    a, b = (a, b) if kind == "rows" else (a.T, b.T)
    places = [(int(i), int(j)) for i, j in re.findall(r"(?:row|column) (\d+) holds (\d+)", words)]
    return len(a) == int(n) and places and all(np.array_equal(b[i], a[j]) for i, j in places) and \
        sum(not np.array_equal(x, y) for x, y in zip(a, b)) == int(count) and \
        sorted(r.tobytes() for r in a) == sorted(r.tobytes() for r in b)


def blocks_ordered(words, a, b):
    axis, order = int("(columns)" in words), order_of(words)
    return np.array_equal(np.concatenate([np.split(a, len(order), axis)[i] for i in order], axis), b)


def heads_transposed(words, a, b):
    n, kind, x, y = re.match(r"its (\d+) heads \((rows|columns)\) transposed: (\d+) x (\d+) stored", words).groups()
    axis, order = int(kind == "columns"), np.arange(int(n)).reshape(int(x), int(y)).T.reshape(-1)
    return np.array_equal(np.concatenate([np.split(a, int(n), axis)[i] for i in order], axis), b)


def rope_rows(words, a, b):
    numbers = [int(i) for i in re.findall(r"\d+", words)]
    there, back = (pairs, unpairs) if "neighbouring" in words else (unpairs, pairs)
    if "and back" in words:
        return np.array_equal(back(len(a) // numbers[1])(there(len(a) // numbers[0])(a)), b)
    return np.array_equal(there(len(a) // numbers[0] if numbers else K)(a), b)


def same_numbers(a, b):
    return np.array_equal(np.sort(a, None), np.sort(b, None))


def is_true(words, a, b, blocks):
    """Of numbers a and b; blocks: what was planted in blocks: None, "healthy", "partly" or "wrong"."""
    if "some of its blocks" in words:
        return blocks == "partly"
    if "but from other numbers" in words:
        return blocks == "wrong"
    if "quantised as" in words:
        return blocks == "healthy"
    if blocks:
        return not same_numbers(a, b)
    for pattern, f in ((r"\d+ of its \d+ (rows|columns) moved", moved_lines), (r"its .* in the order", blocks_ordered),
                       (r"its \d+ heads .* transposed", heads_transposed), ("rows permuted for RoPE", rope_rows)):
        if re.match(pattern, words):
            return f(words, a, b)
    if words == "its two halves exchanged":
        return np.array_equal(np.roll(a, len(a) // 2, 0), b)
    if re.match(r"its \d+ shards rotated by", words):
        n, k = (int(i) for i in re.findall(r"\d+", words))
        return np.array_equal(np.roll(a, -k * len(a) // n, 0), b)
    if words == "transposed":
        return np.array_equal(a.T, b)
    if words.startswith("the same numbers in another order"):
        return same_numbers(a, b)
    if words.startswith("multiplied by"):
        factor = float(words.split()[-1])
        return np.abs(b - factor * a).max() <= 2.0 ** -7 * np.abs(b).max()
    if words.startswith(("other numbers", "unrelated", "another revision")):
        return not same_numbers(a, b)
    return False


# ---- trying ------------------------------------------------------------------------------------

def judge(what, got, touched, a, b, blocks=None):
    """Returns what is wrong. got: of ask(). touched: the names that were changed."""
    if isinstance(got, str):
        return [f"{what}: {got.strip()}"]
    wrong = [f"{what}: {n}: not listed" for n in sorted(set(touched) - set(got))]
    wrong += [f"{what}: {n}: listed, and equal: {got[n]}" for n in sorted(set(got) - set(touched))]
    for n in sorted(set(got) & set(touched)):
        kind, _, certain, words = got[n]
        if certain and not is_true(words, a[n], b[n], blocks if isinstance(blocks, str) or not blocks else blocks[n]):
            wrong.append(f"{what}: {n}: certain, and false: {kind}: {words}")
    return wrong


def plant_numbers(work, k, rng):
    """One plant in all layers and another in one of them: what is broken once must not hide in the others' row."""
    word = ("F32", "F32", "BF16", "F16")[k % 4]
    path, model = make_model(os.path.join(work, f"{k}-a"), rng, word)
    name, parts, change = PLANTS[k % len(PLANTS)]
    part = parts[int(rng.integers(len(parts)))]
    other = PLANTS[int(rng.integers(len(PLANTS)))]
    cand, seed = dict(model), int(rng.integers(1 << 30))
    names = [n for n in model if part in n]
    odd = names[int(rng.integers(len(names)))]
    for n in names:
        if n == odd and any(p in n for p in other[1]):
            cand[n] = other[2](model[n], rng)
        else:
            cand[n] = change(model[n], np.random.default_rng(seed))
    other_path = write_model(path + "-config", os.path.join(work, f"{k}-b"), cand)
    numbers = [{n: values(t) for n, t in m.items()} for m in (model, cand)]
    stored_alike = as_format if word == "F32" and name == "moved and rounded" else None
    a = {n: values(as_format(numbers[0][n], cand[n][0])) if stored_alike or cand[n][0] != word else numbers[0][n]
         for n in model}
    touched = [n for n in names if not np.array_equal(a[n], numbers[1][n])]
    return judge(f"{k}: {name} of {part} in {word}", ask(path, other_path), touched, a, numbers[1])


def scales_of(kind):
    return {"Q8_0": (34, (0,)), "Q4_0": (18, (0,)), "Q4_1": (20, (0, 2)), "Q5_0": (22, (0,)), "Q5_1": (24, (0, 2)),
            "Q4_K": (144, (0, 2)), "Q5_K": (176, (0, 2)), "Q6_K": (210, (208,))}[kind]


def damage(raw, kind, how, rng):
    """raw: the bytes of a tensor of blocks. Returns what became of it."""
    size, scales = scales_of(kind)
    blocks = raw.reshape(-1, size)
    at = blocks[:, scales[0]:scales[0] + 2].copy().view(np.float16)
    if how == "scales moved":
        at = at[rng.permutation(len(at))]
    elif how == "one block":
        i = int(np.abs(at[:, 0].astype(np.float32)).argmax())
        at[i] = at[i] * np.float16(1.6)
    elif how == "all scaled":
        at = (at.astype(np.float32) * 1.1).astype(np.float16)
    elif how == "no minima":
        blocks[:, scales[1]:scales[1] + 2] = 0
    elif how == "rows moved":
        blocks[:] = blocks[rng.permutation(len(blocks))]
        return "wrong"
    blocks[:, scales[0]:scales[0] + 2] = at.view(np.uint8)
    return {"healthy": "healthy", "one block": "partly"}.get(how, "wrong")


def plant_blocks(work, k, rng):
    import gguf
    kind = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")[k % 8]
    how = ("healthy", "scales moved", "one block", "all scaled", "rows moved", "no minima")[k // 8 % 6]
    if how == "no minima" and len(scales_of(kind)[1]) < 2:
        how = "scales moved"
    path, model = make_model(os.path.join(work, f"{k}-a"), rng, "F32")
    file = os.path.join(work, f"{k}.gguf")
    subprocess.run([sys.executable, TWINS, path, "-o", file, "--type", kind, "--no-vocab"], check=True,
                   capture_output=True)
    reader = gguf.GGUFReader(file, "r+")
    victims = [t for t in reader.tensors if t.name.endswith(("ffn_up.weight", "attn_v.weight"))
               and t.tensor_type.name == kind]
    victim = victims[int(rng.integers(len(victims)))]
    became = damage(victim.data.reshape(-1), kind, how, rng)
    reader.data.flush()
    name = f"model.layers.{victim.name.split('.')[1]}." + ("mlp.up_proj" if "ffn_up" in victim.name
                                                           else "self_attn.v_proj") + ".weight"
    a = {n: values(t) for n, t in model.items()}
    b = dict(a)
    touched, states = [], {}
    for t in reader.tensors:
        if t.tensor_type.name not in ("F32", "F16"):
            touched.append(t.name)
    got = ask(path, file)
    b[name] = gguf.dequantize(victim.data, victim.tensor_type).astype(np.float64)
    if isinstance(got, str):
        return [f"{k}: {kind}, {how}: {got.strip()}"]
    wrong = [] if len(got) == len(touched) else [f"{k}: {kind}: {len(got)} of {len(touched)} quantised weights listed"]
    states = {n: became if n == name else "healthy" for n in got}
    moved = {n: b.get(n, a[n]) for n in got}
    for n in got:
        if n != name:
            moved[n] = a[n] + 1  # its numbers are not needed: nothing is only moved
    wrong += judge(f"{k}: {kind}, {how}", got, list(got), {n: a[n] for n in got}, moved, states)
    # the numbers of the blocks, as another engine has them, are the same weights
    twin = dict(model)
    twin[name] = ("F32", b[name].astype(np.float32))
    straight = write_model(path + "-config", os.path.join(work, f"{k}-b"), twin)
    for pair in ((file, straight), (straight, file)):
        if name in (again := ask(*pair)):
            wrong.append(f"{k}: {kind}, {how}: dequantised: {again[name]}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vernier")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plants", type=int, default=200)
    args = parser.parse_args()
    try:
        import gguf  # noqa: F401
        blocks = args.plants * 2 // 5
    except ImportError:
        print("no gguf package: plants in blocks are left out")
        blocks = 0
    wrong = []
    for k in range(args.plants):
        rng = np.random.default_rng([args.seed, k])
        with tempfile.TemporaryDirectory() as work:
            wrong += (plant_blocks if k < blocks else plant_numbers)(work, k, rng)
    for line in wrong:
        print("WRONG", line)
    false = sum("certain, and false" in line for line in wrong)
    print(f"{args.plants} plants ({blocks} in blocks): {false} false statements called certain, "
          f"{len(wrong) - false} other faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
