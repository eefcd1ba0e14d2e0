"""numbers.py: mutations of numbers: right name, shape and format, wrong numbers."""

import math

import numpy as np

from ..mutation import ANY, NOTHING, Change, Mutation, Needs, Numbers, Size, by, in_reference

DIGITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}  # of the mantissa, without the leading one


def _sum(x: np.ndarray) -> float:
    """Added one after the other; numpy's sum depends on how it is divided."""
    return float(np.cumsum(x.reshape(-1))[-1])


def _rms(x: np.ndarray) -> float:
    return math.sqrt(_sum(x * x) / x.size)


def _random(n: int) -> np.ndarray:
    """n pseudorandom numbers between -1 and 1, each derived from its index."""
    x = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x632BE59BD9B4E019)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(np.ldexp(((x ^ x >> np.uint64(31)) >> np.uint64(11)).astype(np.float64), -52) - 1.0)


# ---- NaN, infinity, zeros ----------------------------------------------------------------------


def _middle(value: float) -> Numbers:
    def change(c: Change, x: np.ndarray) -> np.ndarray:
        x.reshape(-1)[x.size // 2] = value
        return x
    return change


def _all(value: float) -> Numbers:
    return lambda c, x: np.full_like(x, value)


nan = _middle(math.nan)
_infinity, _minus_infinity = _middle(math.inf), _middle(-math.inf)
_all_nan, _all_minus_infinity = _all(math.nan), _all(-math.inf)


def scaled(times: float) -> Numbers:
    return lambda c, x: x * times


zeroed, negated, enlarged = scaled(0.0), scaled(-1.0), scaled(1.3)


def _last_nan(c: Change, x: np.ndarray) -> np.ndarray:
    x[-1, -1] = math.nan
    return x


def _minus_infinity_behind(c: Change, x: np.ndarray) -> np.ndarray:
    x[1:] = -math.inf
    return x


def _scores_masked(c: Change, x: np.ndarray) -> np.ndarray:
    x.reshape(-1)[::2] = -math.inf
    return x


def _half_zero(c: Change, x: np.ndarray) -> np.ndarray:
    x.reshape(-1)[x.size // 2:] = 0.0
    return x


def _row_zero(c: Change, x: np.ndarray) -> np.ndarray:
    x[c.T // 2] = 0.0
    return x


def _channel_zero(c: Change, x: np.ndarray) -> np.ndarray:
    x[:, c.W // 2] = 0.0
    return x


def _all_equal(c: Change, x: np.ndarray) -> np.ndarray:
    return np.full_like(x, _rms(x))


def _garbage(c: Change, x: np.ndarray) -> np.ndarray:
    return np.asarray(1.7 * _rms(x) * _random(x.size).reshape(x.shape))


# ---- sizes and signs ---------------------------------------------------------------------------


def _scaled_little(c: Change, x: np.ndarray) -> np.ndarray:
    """bf16.yaml allows some tensors a factor of 1.019."""
    assert c.target
    return x * (1.03 if c.target.dtype == "bf16" else 1.01)


def _row_scaled(c: Change, x: np.ndarray) -> np.ndarray:
    x[-1] *= 1.1
    return x


def _channel_scaled(c: Change, x: np.ndarray) -> np.ndarray:
    x[:, c.W // 3] *= 1.15
    return x


def _behind_channel(times: float) -> Numbers:
    """Gives both sides one large channel, as in trained models, and scales everything else in the candidate."""
    def change(c: Change, x: np.ndarray) -> np.ndarray:
        if c.of != "reference":
            x = x * times
        x[:, c.W // 2] = 60000.0
        return x
    return change


def _behind_number(times: float, rows: int) -> Numbers:
    """Gives both sides one large number, and scales the first rows in the candidate."""
    def change(c: Change, x: np.ndarray) -> np.ndarray:
        if c.of != "reference":
            x[:rows] *= times
        x[0, c.W // 2] = 2000.0
        return x
    return change


def _head_scaled(c: Change, x: np.ndarray) -> np.ndarray:
    x[:, (c.H - 1) * c.K:] *= 1.05
    return x


def _head_zero(c: Change, x: np.ndarray) -> np.ndarray:
    x[:, (c.H - 1) * c.K:] = 0.0
    return x


def _offset(c: Change, x: np.ndarray) -> np.ndarray:
    return x + 0.02 * _rms(x)


def _absolute(c: Change, x: np.ndarray) -> np.ndarray:
    return np.abs(x)


def _clipped(c: Change, x: np.ndarray) -> np.ndarray:
    most = 0.4 * float(np.abs(x).max())
    return np.fmin(np.fmax(x, -most), most)


def _noise(c: Change, x: np.ndarray) -> np.ndarray:
    return x + 0.03 * _rms(x) * _random(x.size).reshape(x.shape)


def _to_bits(bits: int) -> Numbers:
    """Adds one cast, to this many significant bits including the leading one."""
    def change(c: Change, x: np.ndarray) -> np.ndarray:
        m, e = np.frexp(x)
        return np.asarray(np.ldexp(np.rint(np.ldexp(m, bits)), e - bits))
    return change


# ---- scores ------------------------------------------------------------------------------------


def _softmaxed(c: Change, x: np.ndarray) -> np.ndarray:
    for row in x:
        top = float(row.max())
        row[:] = [math.exp(s) for s in row - top]
        row /= _sum(row)
    return x


def _best_lowered(c: Change, x: np.ndarray) -> np.ndarray:
    x[np.arange(c.T), x.argmax(axis=1)] -= 2.0
    return x


def _shifted(c: Change, x: np.ndarray) -> np.ndarray:
    x[:, :-1] = x[:, 1:].copy()
    return x


# ---- bits --------------------------------------------------------------------------------------


def _flip(c: Change, raw: np.ndarray, from_top: int) -> None:
    """Inverts a bit of the number of largest magnitude; 0 is the sign bit. raw: (numbers, bytes), little-endian."""
    assert c.target
    x = np.abs(c.side.numbers(c.target).reshape(-1))
    at, bit = int(np.nanargmax(x)), 8 * raw.shape[1] - 1 - from_top
    raw[at, bit // 8] ^= 1 << bit % 8


def sign_bit(c: Change, raw: np.ndarray) -> None:
    _flip(c, raw, 0)


def exponent_bit(c: Change, raw: np.ndarray) -> None:
    _flip(c, raw, 1)


def _mantissa_bit(c: Change, raw: np.ndarray) -> None:
    assert c.target
    _flip(c, raw, 8 * raw.shape[1] - DIGITS[c.target.dtype])


def _bytes_swapped(c: Change, raw: np.ndarray) -> None:
    raw[:] = raw[:, ::-1].copy()


_T, _S, _H = Needs.TENSOR, Needs.SCORES, Needs.HEADS
_BAD, _ROW, _CHANNEL = by("nonfinite"), by("worst_token_nmse"), by("worst_channel_nmse")
_NMSE, _KL = by("nmse"), by("kl_mean")

MUTATIONS = [
    Mutation("nan", "one number is NaN", _T, _BAD, nan),
    Mutation("nan-in-reference", "one number of the reference is NaN", _T, _BAD, nan, side="reference"),
    Mutation("nan-in-both", "a NaN in the same place on both sides", _T, _BAD, nan, side="both"),
    Mutation("nan-everywhere", "every number is NaN", _T, _BAD, _all_nan),
    Mutation("nan-everywhere-in-both", "every number on both sides is NaN", _T, _BAD, _all_nan, side="both"),
    Mutation("nan-at-the-end", "the very last number is NaN", _T, _BAD, _last_nan),
    Mutation("nan-in-logits", "one score is NaN", _S, _BAD, nan),
    Mutation("infinity", "one number is infinite", _T, _BAD, _infinity),
    Mutation("infinity-in-reference", "one number of the reference is infinite", _T, _BAD, _infinity, side="reference"),
    Mutation("infinity-in-both", "an infinity in the same place on both sides", _T, _BAD, _infinity, side="both"),
    Mutation("infinity-everywhere-in-both", "nothing but minus infinity on both sides", _T, _BAD, _all_minus_infinity,
             side="both"),
    Mutation("minus-infinity-in-both", "minus infinity in the same place on both sides, outside any mask", _T, _BAD,
             _minus_infinity, side="both"),
    Mutation("minus-infinity-nearly-everywhere", "minus infinity on both sides but for the first token", _T, _BAD,
             _minus_infinity_behind, side="both"),
    Mutation("minus-infinity-in-logits", "every second score on both sides is minus infinity", _S, _BAD, _scores_masked,
             side="both"),
    Mutation("minus-infinity", "one number is minus infinity", _T, _BAD, _minus_infinity),

    Mutation("zeroed", "every number is 0", _T, _NMSE, zeroed),
    Mutation("zeroed-in-both", "every number on both sides is 0", _T, NOTHING, zeroed, side="both"),
    Mutation("scores-zeroed-in-both", "every score on both sides is 0", _S, NOTHING, zeroed, side="both"),
    Mutation("all-equal-in-both", "one constant on both sides", _T, NOTHING, _all_equal, side="both"),
    Mutation("half-zero", "the second half was never written", _T, _NMSE, _half_zero),
    Mutation("row-zero", "one token's numbers are 0", _T, _ROW, _row_zero),
    Mutation("channel-zero", "one channel is 0", _T, ANY, _channel_zero, eight=True),
    Mutation("all-equal", "one constant of the usual size", _T, _NMSE, _all_equal),
    Mutation("garbage", "uninitialised memory of plausible size", _T, _NMSE, _garbage),
    Mutation("scaled", "1.01 times as large, in bfloat16 1.03", _T, ANY, _scaled_little, size=Size.FINE, eight=True),
    Mutation("scaled-without-floor", "1.01 times as large, in bfloat16 1.03, and no floor", _T, ANY, _scaled_little,
             floor="none", eight=True),
    Mutation("scores-scaled-without-floor", "logits 1.01 times as large, in bfloat16 1.03, and no floor", _S, ANY,
             _scaled_little, size=Size.FAIR, floor="none", eight=True),
    Mutation("halved", "half as large", _T, _NMSE, scaled(0.5)),
    Mutation("negated", "every sign inverted", _T, _NMSE, negated),
    Mutation("absolute", "absolute values", _T, _NMSE, _absolute),
    Mutation("row-scaled", "one token's numbers 1.1 times as large", _T, _ROW, _row_scaled, size=Size.FINER),
    Mutation("channel-scaled", "one channel 15 % off", _T, ANY, _channel_scaled, size=Size.FINE, eight=True),
    Mutation("channel-scaled-without-floor", "one channel 15 % off, and no floor", _T, ANY, _channel_scaled,
             floor="none", eight=True),
    Mutation("scaled-behind-a-channel",
             "a channel of 60000 on both sides, and all others 1.03 times as large, without a floor", _T, by("scale"),
             _behind_channel(1.03), side="both", floor="none"),
    Mutation("scaled-behind-a-number",
             "a number of 2000 in the first token on both sides, and all others 1.03 times as large, without a floor",
             _T, by("scale"), _behind_number(1.03, 1 << 62), side="both", floor="none"),
    Mutation("negated-behind-a-channel",
             "a channel of 60000 on both sides, and all other signs inverted, without a floor", _T, _CHANNEL,
             _behind_channel(-1.0), side="both", floor="none", eight=True),
    Mutation("zeroed-behind-a-channel",
             "a channel of 60000 on both sides, and all other numbers 0, without a floor", _T, _CHANNEL,
             _behind_channel(0.0), side="both", floor="none", eight=True),
    Mutation("token-negated-behind-a-number",
             "a number of 2000 in the first token on both sides, and its other signs inverted, without a floor", _T,
             _CHANNEL, _behind_number(-1.0, 1), side="both", size=Size.FAIR, floor="none", eight=True),
    Mutation("head-scaled", "one head 5 % off", _H, ANY, _head_scaled, size=Size.FINER, eight=True),
    Mutation("offset", "a constant added, 2 % of the rms", _T, ANY, _offset, size=Size.FINEST),
    Mutation("noise", "noise added, 3 % of the rms at most", _T, ANY, _noise, size=Size.FINEST),
    Mutation("clipped", "clipped at 0.4 of the maximum", _T, ANY, _clipped),
    Mutation("rounded-bf16", "rounded to bf16", Needs.FINER, ANY, _to_bits(8), size=Size.FINEST),
    Mutation("rounded-fp8", "rounded to the bits of float8 e4m3", _T, ANY, _to_bits(4), size=Size.FINEST),

    Mutation("scores-softmaxed", "probabilities recorded as logits", _S, _KL, _softmaxed),
    Mutation("scores-shifted", "logits of the next vocabulary entry", _S, _KL, _shifted),
    Mutation("scores-tempered", "logits divided by 1.1", _S, ANY, scaled(1.0 / 1.1), size=Size.FINE),
    Mutation("scores-channel-scaled", "one score of each row 15 % off", _S, ANY, _channel_scaled, size=Size.FINE,
             eight=True),
    Mutation("scores-best-lowered", "the best score of each row less by 2", _S, _KL, _best_lowered),

    *in_reference("negated", "every sign inverted", _T, negated),
    *in_reference("enlarged", "1.3 times as large", _T, enlarged),
    *in_reference("scaled", "1.03 times as large", _T, scaled(1.03)),
    *in_reference("head-zero", "the last head 0", _H, _head_zero),
    *in_reference("garbage", "uninitialised memory of plausible size", _T, _garbage),

    Mutation("sign-bit", "the sign of the largest number inverted", _T, _ROW, bits=sign_bit),
    Mutation("exponent-bit", "the first exponent bit of the largest number inverted", _T, ANY, bits=exponent_bit,
             size=Size.FAIR),
    Mutation("mantissa-bit", "the first mantissa bit of the largest number inverted", _T, ANY, bits=_mantissa_bit,
             size=Size.FINER),
    Mutation("bytes-swapped", "the bytes of every number reversed", _T, ANY, bits=_bytes_swapped),
]
