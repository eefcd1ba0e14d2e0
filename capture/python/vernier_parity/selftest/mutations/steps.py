"""steps.py: mutations of later steps: of one single-token call, of the last one, and of one channel in all of them."""

from typing import Any, List, Optional

import numpy as np

from ..mutation import ANY, NOTHING, Change, Expected, Mutation, Needs, Numbers, Size, When, by, recognised
from .numbers import enlarged, exponent_bit, nan, negated, scaled, sign_bit, zeroed
from .places import heads_swapped, to_others


def _channel(times: float) -> Numbers:
    def change(c: Change, x: np.ndarray) -> np.ndarray:
        x[0, c.channel] *= times
        return x
    return change


def _channel_zeroed(c: Change, x: np.ndarray) -> np.ndarray:
    x[0, c.channel] = 0.0
    return x


def _later(what: str, said: str, need: Needs, want: Expected, change: Optional[Numbers] = None,
           **more: Any) -> List[Mutation]:
    return [Mutation(f"later-{what}", f"{said}, in a later step of one token", need, want, change, when=When.A_STEP,
                     **more),
            Mutation(f"last-{what}", f"{said}, in the last step, of one token", need, want, change, when=When.LAST_STEP,
                     **more)]


def _in_all(what: str, said: str, change: Numbers, metric: Optional[str], **more: Any) -> Mutation:
    """A single step may also be outside by itself."""
    return Mutation(f"channel-{what}", f"one channel {said} in every step of one token", Needs.TENSOR,
                    by(metric, many=True), change, when=When.EVERY_STEP, **more)


_T = Needs.TENSOR

MUTATIONS = [
    *_later("nan", "one number is NaN", _T, by("nonfinite"), nan),
    *_later("nan-in-both", "a NaN in the same place on both sides", _T, by("nonfinite"), nan, side="both"),
    *_later("zeroed", "every number is 0", _T, by("nmse"), zeroed),
    *_later("zeroed-in-both", "every number on both sides is 0", _T, NOTHING, zeroed, side="both"),
    *_later("negated", "every sign inverted", _T, by("nmse"), negated),
    *_later("enlarged", "1.3 times as large", _T, ANY, enlarged),
    *_later("scaled", "1.03 times as large", _T, ANY, scaled(1.03), size=Size.FINE),
    *_later("sign-bit", "the sign of the largest number inverted", _T, by("nmse"), bits=sign_bit),
    *_later("exponent-bit", "the first exponent bit of the largest number inverted", _T, ANY, bits=exponent_bit),
    # the metric varies, because a single token has few numbers
    *_later("heads-swapped", "two heads exchanged", Needs.HEADS, by("nmse"), heads_swapped),
    *_later("other-layer", "the numbers of the same point of another layer", Needs.LAYERS, recognised("own"),
            to_others),
    Mutation("last-stale", "the numbers of the step before, in the last step", Needs.STEPS, ANY, to_others,
             when=When.LAST_STEP),
    Mutation("last-stale-in-both", "the numbers of the step before on both sides, in the last step", Needs.STEPS,
             NOTHING, to_others, side="both", when=When.LAST_STEP),

    _in_all("scaled", "15 % off", _channel(1.15), None, size=Size.FINE),
    _in_all("scaled-without-floor", "15 % off, without a floor,", _channel(1.15), None, floor="none"),
    _in_all("zeroed", "0", _channel_zeroed, None, size=Size.FINE),
    _in_all("zeroed-without-floor", "0, without a floor,", _channel_zeroed, "worst_channel_nmse", floor="none"),
    _in_all("negated", "with inverted sign", _channel(-1.0), None, size=Size.FINE),
    _in_all("negated-without-floor", "with inverted sign, without a floor,", _channel(-1.0), "worst_channel_nmse",
            floor="none"),
]
