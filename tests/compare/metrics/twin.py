"""twin.py: the definitions of compare/metrics/metrics.h in numpy, for metrics_twin.py.

Sums are in long double, whose range also holds the square of any float64. Nothing is
taken from the program under test: the formats of 8 bits and bfloat16 are decoded and
rounded by what their bits mean.
"""
import math
from collections import namedtuple
from decimal import Decimal, getcontext
from statistics import NormalDist

import numpy as np

# bits after the leading one, exponent of the smallest normal number
Format = namedtuple("Format", "digits emin max least")
FORMATS = {
    "f16": Format(10, -14, 65504.0, 2.0 ** -24),
    "bf16": Format(7, -126, (2 - 2.0 ** -7) * 2.0 ** 127, 2.0 ** -133),
    "f32": Format(23, -126, (2 - 2.0 ** -23) * 2.0 ** 127, 2.0 ** -149),
    "f64": Format(52, -1022, np.finfo(np.float64).max, 2.0 ** -1074),
    "f8_e4m3": Format(3, -6, 448.0, 2.0 ** -9),
    "f8_e5m2": Format(2, -14, 57344.0, 2.0 ** -16),
    "i32": Format(31, 31, 2.0 ** 31 - 1, 1.0),
}
MARKED = {"bf16": np.uint16, "f8_e4m3": np.uint8, "f8_e5m2": np.uint8}
NATIVE = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32}
WIDEST = 2 ** 18  # channels
ROW = 65536  # elements of a row that share one rms
getcontext().prec = 48


def place(x, form):
    """The place of finite numbers in the order of all of a format, rounded to it, as Python's ints hold it."""
    f = FORMATS[form]
    if form == "i32":
        return np.clip(np.rint(x), -2.0 ** 31, 2.0 ** 31 - 1).astype(np.int64)
    if form == "f64":
        bits = np.abs(x).view(np.int64)
        return np.where(np.signbit(x), -bits, bits)
    size = np.abs(x)
    e = np.maximum(np.frexp(size)[1] - 1, f.emin)
    e = np.where(size == 0, f.emin, e)
    whole = np.rint(np.ldexp(size, f.digits - e)).astype(np.int64)  # below 2^(digits+1), or that
    code = whole + ((e - f.emin).astype(np.int64) << f.digits)      # carries into the exponent by itself
    last = math.frexp(f.max)[1] - 1
    top = int(math.ldexp(f.max, f.digits - last)) + ((last - f.emin) << f.digits)
    return np.where(np.signbit(x), -1, 1) * np.minimum(code, top + 1)


def encode(x, form):
    """float64 to what a file holds; rounded, of the narrow ones by `place`."""
    x = np.asarray(x, np.float64)
    if form == "i32":
        return place(x, form).astype(np.int32)
    if form not in MARKED:
        with np.errstate(over="ignore", invalid="ignore"):
            return x.astype(NATIVE[form])
    bits = 8 * np.dtype(MARKED[form]).itemsize
    finite = np.isfinite(x)
    code = np.abs(place(np.where(finite, x, 0), form))
    infinity = {"bf16": 0x7f80, "f8_e5m2": 0x7c, "f8_e4m3": 0x7f}[form]
    code = np.where(np.isinf(x), infinity, np.where(np.isnan(x), (1 << (bits - 1)) - 1, code))
    return (code | (np.signbit(x).astype(np.int64) << (bits - 1))).astype(MARKED[form])


def decode(raw, mark):
    """What a file holds as float64."""
    mark = mark.decode() if isinstance(mark, bytes) else mark
    if mark not in MARKED:
        return np.asarray(raw, np.float64)
    f = FORMATS[mark]
    bits = 8 * raw.dtype.itemsize
    code = raw.astype(np.int64) & ((1 << (bits - 1)) - 1)
    e, m = code >> f.digits, code & ((1 << f.digits) - 1)
    x = np.ldexp(np.where(e > 0, m + (1 << f.digits), m).astype(np.float64), np.maximum(e, 1) - 1 + f.emin - f.digits)
    full = e == (1 << (bits - 1 - f.digits)) - 1
    if mark == "f8_e4m3":
        x = np.where(code == 0x7f, np.nan, x)
    else:
        x = np.where(full, np.where(m == 0, np.inf, np.nan), x)
    return np.where(raw >> (bits - 1) & 1, -x, x)


def rank(n, share):
    return max(math.ceil(share * n) - 1, 0)


def bucket_top(d):
    """15 and less exactly, above to an eighth of an octave."""
    if d < 16:
        return float(d)
    x = float(np.float32(d))
    width = 2.0 ** (math.frexp(x)[1] - 1 - 3)
    return math.floor(x / width) * width + width - 1


def kl_of(r, c):
    """KL(softmax r || softmax c) of one row with 50 digits."""
    good = np.isfinite(r) & np.isfinite(c)
    if not (good | ((r == c) & (r < 0))).all():
        return math.nan
    if not good.any():
        return 0.0
    r, c = [Decimal(float(v)) for v in r[good]], [Decimal(float(v)) for v in c[good]]
    rm, cm = max(r), max(c)
    a, b = [(v - rm).exp() for v in r], [(v - cm).exp() for v in c]
    za, zb = sum(a), sum(b)
    shift = (rm - cm) + (za / zb).ln()
    return float(sum(e / za * (x - y - shift) for e, x, y in zip(a, r, c)))


class Twin:
    def __init__(self, r, c, rf, cf, axes, scores, logits=None):
        self.shape, self.axes, self.rf, self.cf = r.shape, axes, rf, cf
        self.grid = rf if FORMATS[rf].digits < FORMATS[cf].digits else cf
        self.raw = r, c
        self.good = np.isfinite(r) & np.isfinite(c)
        self.n = int(self.good.sum())
        with np.errstate(invalid="ignore", over="ignore"):
            self.r = np.where(self.good, r, 0).astype(np.longdouble)
            self.c = np.where(self.good, c, 0).astype(np.longdouble)
            self.d = np.abs(self.c - self.r)
        self.token = axes.index("token") if "token" in axes else 0 if not axes and r.ndim > 1 else -1
        self.has_scores = scores
        self.logits = scores if logits is None else logits
        self.found = {}
        self.sums()
        self.rows()
        self.channels()
        self.relative()
        self.ulps()
        if scores:
            self.scores()

    def metric(self, name):
        """A tensor without one finite pair has no error, and reports say so; counts it has."""
        return (float("nan") if self.n == 0 and name in self.found and name not in ("nonfinite", "differing")
                else self.found.get(name))

    def sums(self):
        rr, cc, rc, dd = ((self.r * self.r).sum(), (self.c * self.c).sum(), (self.r * self.c).sum(),
                          (self.d * self.d).sum())
        n = max(self.n, 1)
        bad = ~self.good
        same = self.raw[0].view(np.int64) == self.raw[1].view(np.int64)
        with np.errstate(divide="ignore", over="ignore"):
            self.found.update(
                cosine=self.cosine(rr, cc, rc), nmse=self.ratio(dd, rr), rmse=np.sqrt(dd / n),
                mean_abs=self.d.sum() / n,
                max_abs=np.abs(self.raw[1][self.good] - self.raw[0][self.good]).max() if self.n else 0.0,
                norm_ratio=1.0 if rr == 0 and cc == 0 else np.sqrt(cc) / np.sqrt(rr),
                scale=self.scale(rr, cc, rc, dd, n), nonfinite=bad.sum() if self.n else self.good.size,
                headroom=np.abs(self.c).max() / FORMATS[self.cf].max, differing=(~same).sum())

    @staticmethod
    def ratio(dd, rr):
        return 0.0 if dd == 0 else np.inf if rr == 0 else dd / rr

    @staticmethod
    def scale(rr, cc, rc, dd, n):
        if rr == 0:
            return 0.0 if cc == 0 else np.inf
        return Twin.beyond(abs(rc / rr - 1), dd / rr, n)

    @staticmethod
    def beyond(off, nmse, n):
        if not off < 1e6:
            return off
        return max(0.0, off - 6 * np.sqrt(max(nmse - off * off, nmse / 2**20) / n))

    @staticmethod
    def cosine(rr, cc, rc):
        return 1.0 if rr == 0 and cc == 0 else 0.0 if rr == 0 or cc == 0 else rc / (np.sqrt(rr) * np.sqrt(cc))

    def rows(self):
        """One token each, over all other axes."""
        if self.token < 0:
            self.found.update(worst_token_cosine=self.found["cosine"], worst_token_nmse=self.found["nmse"])
            return
        r, c, d = (np.moveaxis(x, self.token, 0).reshape(self.shape[self.token], -1) for x in (self.r, self.c, self.d))
        rr, cc, rc, dd = (r * r).sum(1), (c * c).sum(1), (r * c).sum(1), (d * d).sum(1)
        least = np.sort(rr)[rank(len(rr), 0.5)] / 64
        self.cosines = [self.cosine(*x) for x in zip(rr, cc, rc)]
        self.nmses = [self.ratio(x, max(y, least)) for x, y in zip(dd, rr)]
        self.found.update(worst_token_cosine=min(self.cosines), worst_token_nmse=max(self.nmses))

    def channels(self):
        """Every place but the token's, over 32 tokens at most, one of each stretch."""
        self.found.update(worst_channel_nmse=self.found["nmse"], worst_channel_scale=self.found["scale"])
        keys = "key" in self.axes if self.axes else len(self.shape) != 2
        if self.token < 0 or keys or not self.n or self.r.size // self.shape[self.token] > WIDEST:
            return
        rows = self.shape[self.token]
        n = min(rows, 32)
        some = [self.row(i, n, rows) for i in range(n)]
        r, d = (np.moveaxis(x, self.token, 0)[some].reshape(n, -1) for x in (self.r, self.c - self.r))
        rr, rd, dd = (r * r).sum(0), (r * d).sum(0), (d * d).sum(0)
        least = max(np.sort(rr)[rank(len(rr), 0.5)] / 4, rr.mean() / 2**30)
        if least == 0:
            return
        size = np.maximum(rr, least)
        off = rd / size
        middle = np.sort(off)[rank(len(off), 0.5)]
        deviation = 1.4826 * np.sort(abs(off - middle))[rank(len(off), 0.5)]
        deviation = deviation if abs(middle) < 1e6 else 0
        kept = []
        for x in self.raw[0].reshape(-1, rows, int(np.prod(self.shape[self.token + 1:])))[0, some, :64]:
            if all(self.differ(x, y) for y in kept):
                kept.append(x)
        n = len(kept)
        if (n >= 8 or not self.logits) and n * len(off) >= 32:
            self.found["scale"] = max(self.found["scale"], abs(middle) - 6 * 1.2533 * deviation / np.sqrt(len(off)))
        if n >= 8:
            self.nmses_of_channels = dd / size
            self.scales_of_channels = [max(0, min(self.beyond(abs(x), y, n), abs(x) - 6 * deviation)) for x,
                                       y in zip(off, dd / size)]
            self.found.update(worst_channel_nmse=max(self.nmses_of_channels),
                              worst_channel_scale=max(self.scales_of_channels))

    @staticmethod
    def row(i, rows, of):
        mixes, most = 0xE2EAC659, 0xFFFFFFFF
        h = (i + 1) * mixes & most
        h = (h ^ h >> 15) * mixes & most
        start, end = i * of // rows, (i + 1) * of // rows
        return start + ((h ^ h >> 16) * (end - start) >> 32)

    @staticmethod
    def differ(x, y):
        with np.errstate(invalid="ignore", over="ignore"):
            return 4 * np.count_nonzero(abs(x - y) > np.maximum(abs(x), abs(y)) / 16) >= len(x)

    def relative(self):
        """|c-r| / max(|r|, rms / 8), the rms of a run of one token in memory, 65536 elements of it at most."""
        inner = self.r.size if self.token < 0 else int(np.prod(self.shape[self.token + 1:]))
        r, d, good = (x.reshape(-1, inner) for x in (self.r, self.d, self.good))
        total, most = np.longdouble(0), np.longdouble(0)
        for at in range(0, inner, ROW):
            x, y, m = r[:, at:at + ROW], d[:, at:at + ROW], good[:, at:at + ROW]
            n = np.maximum(m.sum(1), 1)
            size = np.maximum(np.abs(x), (np.sqrt((x * x).sum(1) / n) / 8)[:, None])
            with np.errstate(divide="ignore", invalid="ignore"):
                q = np.where(y == 0, 0, y / size)
            total, most = total + q.sum(), max(most, q.max())
        self.found.update(max_rel=most, mean_rel=total / max(self.n, 1))

    def ulps(self):
        r, c = (x[self.good] for x in self.raw)
        a, b = place(r, self.grid), place(c, self.grid)
        far = np.sort(np.where(a > b, a.astype(np.uint64) - b.astype(np.uint64),
                               b.astype(np.uint64) - a.astype(np.uint64)))
        most = float(far[-1]) if self.n else 0.0
        for key, share in (("ulp_p50", 0.5), ("ulp_p99", 0.99)):
            self.found[key] = min(bucket_top(int(far[rank(self.n, share)])), most) if self.n else 0.0
        self.found["ulp_max"] = most

    def scores(self):
        width = self.shape[-1]
        agree, strict, shared, kl = 0, 0, 0, []
        for r, c in zip(*(x.reshape(-1, width) for x in self.raw)):
            kl.append(kl_of(r, c))
            if math.isnan(kl[-1]):
                continue
            low = np.isfinite(r)
            wide = r[low].astype(np.longdouble)
            tie = np.sqrt(((wide - wide.mean()) ** 2).mean()) / 64 if low.any() else 0
            agree += np.longdouble(r.max()) - np.longdouble(r[np.argmax(c)]) <= tie if low.any() else 1
            strict += int(np.argmax(r) == np.argmax(c))
            top = [set(np.argsort(-x, kind="stable")[:5]) for x in (r, c)]
            shared += len(top[0] & top[1])
        n = len(kl)
        order = sorted(kl, key=lambda x: math.inf if math.isnan(x) else x)
        self.found.update(argmax_agreement=agree / n, top5_agreement=shared / (n * min(5, width)),
                          kl_mean=math.fsum(kl) / n,
                          kl_p99=order[rank(n, 0.99)], kl_max=order[-1])
        self.beside = {"argmax_strict": strict / n}
        if n > 1 and not any(math.isnan(x) for x in kl):
            self.beside["kl_mean_half"] = (NormalDist().inv_cdf(0.975)
                                           * float(np.std(np.array(kl, np.longdouble), ddof=1)) / math.sqrt(n))

    def places(self, point):
        """What is wrong with what stands beside the metrics: indices, the values there, counts."""
        said = []
        for key, value in getattr(self, "beside", {}).items():
            if not math.isclose(point.get(key, math.nan), value, rel_tol=1e-12, abs_tol=1e-30):
                said.append(f"{key} is {point.get(key)}, the twin says {value}")
        if "max_abs_at" in point:
            at = tuple(point["max_abs_at"]["index"])
            if [self.raw[0][at], self.raw[1][at]] != [point["max_abs_at"][side] for side in ("reference", "candidate")]:
                said.append(f"the values at {at} are {self.raw[0][at]!r} and {self.raw[1][at]!r}")
            with np.errstate(over="ignore", invalid="ignore"):
                d = np.abs(self.raw[1] - self.raw[0])
            first = np.unravel_index(np.argmax(np.where(self.good, d, -1)), self.shape)
            if tuple(int(i) for i in first) != at:
                said.append(f"max_abs is at {at}, the twin finds it at {first}")
        if point.get("ulp_of") != self.grid:
            said.append(f"ulps of {point.get('ulp_of')}, not {self.grid}")
        for key, values, end in (("worst_token", "cosines", "worst_token_cosine"),
                                 ("worst_nmse_token", "nmses", "worst_token_nmse"),
                                 ("worst_nmse_channel", "nmses_of_channels", "worst_channel_nmse"),
                                 ("worst_scale_channel", "scales_of_channels", "worst_channel_scale")):
            if key in point and hasattr(self, values):
                # beyond float64 all are inf
                here, there = float(getattr(self, values)[point[key]]), float(self.found[end])
                if not (here == there or abs(here - there) <= 1e-12 * max(1.0, abs(there))):
                    said.append(f"{key} {point[key]} has {here}, another {there}")
        counts = [[int(f(x).sum()) for x in self.raw] for f in (np.isnan, np.isinf)]
        if [point["nan"], point["inf"]] != counts:
            said.append(f"NaN and infinities {point['nan']}, {point['inf']}, the twin counts {counts}")
        return said
