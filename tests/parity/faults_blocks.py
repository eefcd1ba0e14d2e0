"""faults_blocks.py: weights in blocks of a few bits, and the faults that read them otherwise (specs/models.md 4.1;
specs/faults.md, chapter W)."""
import struct

import numpy as np

Q4_0, Q4_1, Q4_K, Q5_K = 2, 3, 12, 13


def gguf(path):
    """name -> (rows, columns, type, bytes) of the matrices of a GGUF file."""
    d, at = open(path, "rb").read(), 8
    numbers = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}

    def number(code):
        nonlocal at
        x, = struct.unpack_from("<" + code, d, at)
        at += struct.calcsize("<" + code)
        return x

    def text():
        nonlocal at
        n = number("Q")
        at += n
        return d[at - n:at].decode("utf-8", "replace")

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            kind = number("I")
            return [value(kind) for _ in range(number("Q"))]
        return number(numbers[kind])

    tensors, keys, found = number("Q"), number("Q"), {}
    for _ in range(keys):
        text()
        value(number("I"))
    for _ in range(tensors):
        name, dims = text(), [number("Q") for _ in range(number("I"))]
        found[name] = dims, number("I"), number("Q")
    begin = (at + 31) // 32 * 32
    return {n: (dims[1] if len(dims) > 1 else 1, dims[0], kind, d[begin + offset:]) for n,
            (dims, kind, offset) in found.items()}


def halves(b):
    return np.ascontiguousarray(b).view("<f2").astype(np.float64)


def by_32(rows, columns, kind, data, fault):
    size, head = (18, 2) if kind == Q4_0 else (20, 4)
    b = np.frombuffer(data, np.uint8, rows * columns // 32 * size).reshape(-1, size)
    low, high = b[:, head:] & 15, b[:, head:] >> 4
    if fault == "W16.swapped":
        low, high = high, low
    q = (np.stack([low, high], 2).reshape(-1, 32) if fault == "W16"
         else np.concatenate([low, high], 1)).astype(np.float64)
    d = moved(halves(b[:, :2]), rows, fault)
    d = np.ones_like(d) if fault == "W22" else d
    least = 0 if fault == "W17.dropped" else halves(b[:, 2:4])
    return ((q - 8) * d if kind == Q4_0 else q * d + least).reshape(rows, columns)


def moved(d, rows, fault):
    """The scales of all blocks, in another order."""
    G = len(d) // rows
    if fault == "W21.next":
        return np.roll(d, -1, 0)
    tile = {"W21": 32, "W21.back": 32, "W21.all": rows, "W21.all_back": rows}.get(fault)
    if tile is None:
        return d
    tile = min(tile, rows)
    whole, d = rows // tile * tile * G, d.copy()
    shape = (-1, G, tile) if "back" in fault else (-1, tile, G)
    d[:whole] = d[:whole].reshape(shape).transpose(0, 2, 1).reshape(whole, 1)
    return d


def by_256(rows, columns, kind, data, fault):
    size = 144 if kind == Q4_K else 176
    b = np.frombuffer(data, np.uint8, rows * columns // 256 * size).reshape(-1, size)
    s, qs = b[:, 4:16].astype(int), b[:, -128:].reshape(-1, 4, 32)
    high = 0 if fault == "W17" else 1
    sc = np.concatenate([s[:, :4] & 63, s[:, 8:] & 15 | high * (s[:, :4] >> 6) << 4], 1)
    m = np.concatenate([s[:, 4:8] & 63, s[:, 8:] >> 4 | high * (s[:, 4:8] >> 6) << 4], 1)
    low, top = qs & 15, qs >> 4
    if fault == "W16.swapped":
        low, top = top, low
    q = np.stack([low, top], 2).reshape(-1, 8, 32).astype(int)
    if kind == Q5_K:
        q = q | (b[:, None, 16:48] >> np.arange(8)[None, :, None] & 1).astype(int) << 4
    d, least = halves(b[:, :2])[:, :, None], halves(b[:, 2:4])[:, :, None]
    least = 0 * least if fault == "W17.dropped" else least
    d = np.ones_like(d) if fault == "W22" else d
    sc = np.ones_like(sc) if fault == "W22.sub" else sc
    y = d * sc[:, :, None] * q - (-1 if fault == "W17.min" else 1) * least * m[:, :, None]
    return y.reshape(rows, columns)


def numbers(tensor, fault=None):
    """A matrix as floats; None if the fault does not apply to its format."""
    rows, columns, kind, data = tensor
    fits = {None: (Q4_0, Q4_1, Q4_K, Q5_K), "W16": (Q4_0, Q4_1), "W16.swapped": (Q4_0, Q4_1, Q4_K), "W17": (Q4_K, Q5_K),
            "W17.min": (Q4_K, Q5_K), "W17.dropped": (Q4_1, Q4_K, Q5_K),
            "W22": (Q4_0, Q4_1, Q4_K, Q5_K), "W22.sub": (Q4_K, Q5_K),
            **dict.fromkeys(("W21", "W21.back", "W21.all", "W21.all_back", "W21.next"), (Q4_0,))}
    if kind not in fits[fault]:
        return None
    return (by_32 if kind in (Q4_0, Q4_1) else by_256)(*tensor, fault)


def quantised(w, bits):
    """Rows of a matrix as Q8_0 or Q4_0 would hold them."""
    y = np.empty_like(w)
    for n in range(0, w.shape[1], 32):
        x = w[:, n:n + 32]
        most = np.take_along_axis(x, np.abs(x).argmax(1, keepdims=True), 1)
        d = (np.abs(most) / 127 if bits == 8 else most / -8).astype(np.float32).astype(np.float64)
        r = np.divide(x, d, out=np.zeros_like(x), where=d != 0)
        q = np.trunc(r + np.copysign(0.5, r)) if bits == 8 else np.minimum(15, np.floor(r + 8.5)) - 8
        y[:, n:n + 32] = q * d.astype(np.float32).astype(np.float16).astype(np.float64)
    return y


PRODUCTS = {"q_proj": ("attn_q", "attn_norm"), "k_proj": ("attn_k", "attn_norm"), "gate_proj": ("ffn_gate", "mlp_norm"),
            "up_proj": ("ffn_up", "mlp_norm")}


def product(tensors, layer, point, recorded, fault):
    """x W^T + b of a layer's product, or None."""
    name, x = PRODUCTS[point]
    w = numbers(tensors[f"blk.{layer}.{name}.weight"], fault)
    if w is None:
        return None
    x = recorded[f"layer{layer}.{x}"].astype(np.float64)
    b = tensors.get(f"blk.{layer}.{name}.bias")
    return x @ w.T + (0 if b is None else np.frombuffer(b[3], "<f4", b[1]).astype(np.float64))
