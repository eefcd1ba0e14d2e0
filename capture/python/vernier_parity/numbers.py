"""numbers.py: converts arrays of any engine to the numbers of a checkpoint file; their format, digest and
statistics."""

import math
import sys
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from .printed import printed

try:
    import xxhash
except ImportError:  # then recordings have no digests
    xxhash = None

Number = Union[int, float]
Ids = Union[Sequence[int], Sequence[Sequence[int]], np.ndarray]

# The formats of a file: numpy's type of the stored array, and the attribute dtype if HDF5
# has no such type.
STORED = {"f16": "<f2", "f32": "<f4", "f64": "<f8", "i32": "<i4", "bf16": "<u2", "f8_e4m3": "u1", "f8_e5m2": "u1"}
SAID = ("bf16", "f8_e4m3", "f8_e5m2")
PLAIN = {np.dtype(kind): word for word, kind in STORED.items() if word not in SAID}
NARROW = {"bfloat16": "bf16", "float8_e4m3fn": "f8_e4m3", "float8_e5m2": "f8_e5m2"}  # names in the frameworks
# Statistics are computed in blocks that fit into a core's cache. BLAS sums squares in rows so short
# that it starts no threads: waiting for threads takes forty times as long as the sum.
ROWS, ROW = 16, 8192


class RecordingError(ValueError):
    """A recording, or an argument of the recorder, is not valid. One line: file, checkpoint, what is wrong, what was
    expected."""

    def __init__(self, text: str) -> None:
        super().__init__(printed(text))


class Diverged(Exception):
    """A run that is judged during recording differs from its reference (stop_at_first). name: the first tensor that
    differs, "step.2/layer3.q_rope"; path: the recording, which is complete up to there; against: the reference."""

    def __init__(self, name: str, path: str, against: str) -> None:
        super().__init__(printed(f"{path}: {name} differs from {against}; the run was stopped there"))
        self.name, self.path, self.against = name, path, against


def digest(raw: Any) -> Optional[str]:
    """XXH3-128 of bytes, 32 lower-case hex digits; None without xxhash."""
    return xxhash.xxh3_128_hexdigest(raw) if xxhash else None


def digest_of(a: np.ndarray) -> Optional[str]:
    """The digest of an array's numbers, as a file stores them."""
    return digest(np.ascontiguousarray(a, a.dtype.newbyteorder("<")).reshape(-1).view(np.uint8))


def stored(x: Any, word: Optional[str] = None) -> Tuple[np.ndarray, str]:
    """(the array as it is stored, its format). x: as of host().

    word: "bf16" if x is float32 with bfloat16 values, because numpy has no bfloat16.
    """
    try:
        return _stored(x, word)
    except RecordingError:
        raise
    except (ValueError, TypeError, RuntimeError, NotImplementedError) as e:  # ragged, sparse, quantised, on no device
        raise RecordingError(f"not an array of numbers: {' '.join(str(e).split())[:160]}") from None


def dense(t: Any) -> Any:
    """A torch tensor as it is computed with: what a subclass holds in another form (quantised weights) dequantised."""
    import torch

    inner = t.data
    if type(inner) is not torch.Tensor and hasattr(inner, "dequantize"):
        t = inner.dequantize()
    elif t.is_quantized:
        t = t.dequantize()
    return t.detach()


def host(x: Any) -> Tuple[np.ndarray, Optional[str]]:
    """(x as a numpy array, the format whose bits that holds, since numpy lacks it; None: the array's own).

    x: an array of torch, MLX, tinygrad, or anything that numpy takes (JAX, lists). No framework is imported.
    """
    home = type(x).__module__.partition(".")[0]
    loaded = sys.modules.get
    if loaded("torch") is not None and isinstance(x, sys.modules["torch"].Tensor):
        import torch

        x = dense(x)
        word = NARROW.get(str(x.dtype).rpartition(".")[2])
        if word:
            x = x.contiguous().view(torch.int16 if word == "bf16" else torch.uint8)
        return x.cpu().numpy(), word
    if home == "mlx" and "bfloat16" in str(x.dtype):
        return np.array(x.view(sys.modules["mlx.core"].uint16)), "bf16"
    if home == "tinygrad":
        kinds = sys.modules["tinygrad"].dtypes
        return (x.bitcast(kinds.uint16).numpy(), "bf16") if x.dtype == kinds.bfloat16 else (x.numpy(), None)
    a = np.asarray(x)
    word = NARROW.get(a.dtype.name)  # ml_dtypes
    return (np.ascontiguousarray(a).view(STORED[word]), word) if word else (a, None)


def _stored(x: Any, word: Optional[str]) -> Tuple[np.ndarray, str]:
    a, bits = host(x)
    if bits:
        return a.view(STORED[bits]), bits
    a = np.ascontiguousarray(a).reshape(a.shape)  # ascontiguousarray makes an array of one from a number
    a = a.astype(a.dtype.newbyteorder("<"), copy=False)
    if word == "bf16" and a.dtype == np.dtype("<f4"):
        bits32 = a.view("<u4")
        if (bits32 & 0xFFFF).any():
            raise RecordingError("float32 numbers, but not all are bfloat16 values")
        return (bits32 >> 16).astype("<u2"), "bf16"
    if word in SAID and a.dtype == np.dtype(STORED[word]):
        return a, word
    if a.dtype == np.dtype("<i8") and word in (None, "i32") and a.size and -(1 << 31) <= a.min() and a.max() < 1 << 31:
        a = a.astype("<i4")  # token ids; `vernier import` converts them, too
    if a.dtype not in PLAIN or word not in (None, PLAIN[a.dtype]):
        raise RecordingError(f"{a.dtype}{f' as {word}' if word else ''}; a file holds float16, bfloat16, float32, "
                             f"float64, float8 and int32")
    return a, PLAIN[a.dtype]


def ids_array(what: str, ids: Ids) -> np.ndarray:
    """Token ids or positions as an int32 array, (N) or (B, N)."""
    try:
        a = host(ids if hasattr(ids, "shape") else list(ids))[0]
    except ValueError:
        raise RecordingError(f"{what}: rows of different lengths; pad them, with -1 in positions") from None
    if a.size == 0 or a.ndim not in (1, 2) or not np.issubdtype(a.dtype, np.integer):
        raise RecordingError(f"{what}: shape {a.shape} of {a.dtype}; expected whole numbers, (N) or (B, N)")
    if a.min() < -1 or a.max() >= 1 << 31:
        raise RecordingError(f"{what}: a number outside 0 to 2147483647")
    return a.astype("<i4")


def f8_values(word: str) -> np.ndarray:
    """The value of each code of an 8-bit format (OCP's E4M3 without infinities, E5M2): (256,) float32."""
    code = np.arange(256)
    if word == "f8_e5m2":  # the upper byte of a float16
        return (code.astype("<u2") << 8).view("<f2").astype(np.float32)
    e, m = (code & 0x7F) >> 3, (code & 7) / 8
    x = np.where(e == 0, m * 2.0 ** -6, (1 + m) * 2.0 ** (e - 7))
    x[code & 0x7F == 0x7F] = np.nan
    return np.where(code & 0x80, -x, x).astype(np.float32)


def values(a: np.ndarray, word: str) -> np.ndarray:
    """Numbers to compute with: bfloat16 and 8-bit formats as float32, exactly; everything else as it is."""
    if word == "bf16":
        return (a.astype("<u4") << 16).view("<f4")
    return f8_values(word)[a] if word in SAID else a


def statistics(a: np.ndarray, word: str) -> Dict[str, Number]:
    """min, max, mean, rms, absmax over the finite values in float64 (NaN where there are none), and counts nan, inf."""
    flat = a.reshape(-1)
    low, high, total, squares, n, nan, inf = math.inf, -math.inf, 0.0, 0.0, 0, 0, 0
    block = np.empty(ROWS * ROW)
    for at in range(0, flat.size, block.size):
        part = values(flat[at : at + block.size], word)
        x = block[: part.size]
        np.copyto(x, part)
        of = part if word == "f32" else x  # numpy's minimum of float16 is slow
        least, most = float(of.min()), float(of.max())
        if not (math.isfinite(least) and math.isfinite(most)):
            nan += int(np.isnan(x).sum())
            inf += int(np.isinf(x).sum())
            x = x[np.isfinite(x)]
            if not x.size:
                continue
            least, most = float(x.min()), float(x.max())
        low, high, n = min(low, least), max(high, most), n + x.size
        total += float(x.sum())
        whole = x.size // ROW * ROW
        rows, rest = x[:whole].reshape(-1, ROW), x[whole:]
        squares += float(np.matmul(rows[:, None, :], rows[:, :, None]).sum()) + float(np.dot(rest, rest))
    if n == 0:
        return dict(min=math.nan, max=math.nan, mean=math.nan, rms=math.nan, absmax=math.nan, nan=nan, inf=inf)
    big = max(-low, high)
    rms = math.sqrt(squares / n)
    if word == "f64" and big > 0 and not 1e-150 < rms < 1e150:  # squares overflow or underflow
        x = flat[np.isfinite(flat)] / big
        rms = big * math.sqrt(float(np.dot(x, x)) / n)
    return dict(min=low, max=high, mean=total / n, rms=rms, absmax=big, nan=nan, inf=inf)
