"""mutation.py: what a mutation is: what it needs, what it changes, what must be found."""

import enum
from dataclasses import dataclass, field
from typing import Callable, List, Optional

import numpy as np

from .edit import Edit
from .side import Side, Tensor


class Needs(enum.Enum):
    """What a mutation needs in a recording; the value is the reason if it is not there."""

    NOTHING = ""
    # target: at least 3 tokens (later step: one) by 8 numbers, inside a layer
    TENSOR = "no tensor of three tokens by eight numbers inside a layer"
    FINER = "no tensor in a finer format than bf16"  # same, in a run that keeps and sums more digits than bfloat16
    HEADS = "no tensor of three tokens with heads"  # at least two heads, of at least two numbers
    SCORES = "no logits of three tokens"
    # target and a later other: two points of one layer, equal shapes
    PAIR = "no two such tensors of equal shape and different numbers in one layer"
    LAYERS = "no such tensor in two layers"  # target and a later other: one point of two layers, equal shapes
    # target and other: one checkpoint of a later step and of the step before
    STEPS = "no two steps with equal numbers of tokens"
    NAMES = "no second names"  # target: a second name; other: a different tensor of its shape
    WEIGHTS = "no table of weights"
    PLAN = "no plan"
    CONFIG = "no config"
    FLOOR = "no floor"
    EARLIER = "no recording of other tokens"
    UNRELATED = "no recording of other weights"


class When(enum.IntEnum):
    """The call that is changed. A later step has one token. EVERY_STEP: target's checkpoint in all such steps; 8 of
    them have different numbers, so that channels are judged."""

    FIRST_CALL, A_STEP, LAST_STEP, EVERY_STEP = range(4)


class Size(enum.IntEnum):
    """The size of a change. FINE and finer: about the rounding error of a 16-bit run after some layers, times the ratio
    by which correct engines differ; made where the floor is lowest. Without a floor, some limits are wider than the
    change. FAIR: larger, but the limits of bf16 after a recurrence (Qwen3.5) are wider; FINER: those of bf16, of
    f16-acc16 and after a recurrence; FINEST: those of every 16-bit run."""

    COARSE, FAIR, FINE, FINER, FINEST = range(5)


@dataclass
class Change:
    """A recording as a mutation sees it."""

    of: str  # whose recording it is: "reference" or "candidate"
    side: Side  # the original
    target: Optional[Tensor] = None
    other: Optional[Tensor] = None
    raw: np.ndarray = field(default_factory=lambda: np.empty(0))  # the numbers of target as they are stored
    other_raw: np.ndarray = field(default_factory=lambda: np.empty(0))
    T: int = 0  # of target: tokens, numbers per token, heads, numbers per head
    W: int = 0
    H: int = 1
    K: int = 0
    y: Optional[np.ndarray] = None  # (T,W) other's numbers, if the shapes are equal
    channel: int = 0  # EVERY_STEP: the channel of median size over all steps

    @property
    def at(self) -> str:
        """The path of target in the file."""
        return self.side.path_of(self.target)

    @property
    def there(self) -> str:
        return self.side.path_of(self.other)


Numbers = Callable[[Change, np.ndarray], np.ndarray]  # returns x (T,W), the numbers of target, changed


@dataclass(frozen=True)
class Expected:
    """What must be found. status None: refused, exit status 2, by a line with the word of --allow that would have
    allowed it, or (allow None, or in addition) by one that says `says`."""

    status: Optional[str] = "outside"  # of target
    metric: Optional[str] = None  # the limit that must be broken; None: any
    many: bool = False  # more checkpoints may be outside
    anywhere: bool = False  # some checkpoint must be found, not necessarily target
    like: Optional[str] = None  # what it must be recognised as (`as` of layout_match)
    detail: Optional[str] = None  # why it cannot be measured: words of its `detail`
    reordered: bool = False  # it holds the reference's numbers in another order
    invalid_floor: bool = False  # the floor must be rejected
    allow: Optional[str] = None
    says: str = ""
    by_words: bool = True


def by(metric: Optional[str], many: bool = False, invalid_floor: bool = False) -> Expected:
    return Expected(metric=metric, many=many, invalid_floor=invalid_floor)


def recognised(like: str) -> Expected:
    return Expected(metric="nmse", like=like)


def refused(word: str, says: str) -> Expected:
    """Refused, unless `--allow word` is given."""
    return Expected(status=None, allow=word, says=says, by_words=False)


def fails(says: str) -> Expected:
    """Ends with exit status 2 and a line that says this."""
    return Expected(status=None, says=says)


ANY = by(None)
NOTHING = by("nmse")  # vacuous: the check of the nmse fails, whatever its value


@dataclass(frozen=True)
class Mutation:
    """One mutation. Exactly one of these says what it does:
    numbers  returns x (T,W), the numbers of target, changed; digest and statistics are adjusted
    bits     changes the stored bytes (T W, bytes of a number), the same
    edit     changes anything in the file
    file     changes the bytes of the file"""

    name: str
    does: str  # half a line
    needs: Needs = Needs.NOTHING
    want: Expected = ANY
    numbers: Optional[Numbers] = None
    bits: Optional[Callable[[Change, np.ndarray], None]] = None
    edit: Optional[Callable[[Edit, Change], None]] = None
    file: Optional[Callable[[str], None]] = None
    side: str = "candidate"  # "candidate", "reference", "both"
    when: When = When.FIRST_CALL
    size: Size = Size.COARSE
    plan: bool = False  # visible only through /plan
    # in the first call: visible only with 8 different tokens, which tell a channel or an order of
    # rows from chance
    eight: bool = False
    # where the floor comes from: the pair's own ("given"), "none", a "recorded" one, the "model"; a
    # mutation with one of the last two is skipped for a pair that lacks it
    floor: str = "given"
    claim: Optional[str] = None  # visible only through this fact that target states on both sides

    @property
    def changes_reference(self) -> bool:
        return self.side != "candidate"

    @property
    def changes_candidate(self) -> bool:
        return self.side != "reference"


def in_reference(what: str, said: str, need: Needs, change: Numbers) -> List[Mutation]:
    """Mutations of the reference. A wrong reference is far from its floor, too, which must not excuse the candidate."""
    want = by("nmse", invalid_floor=True)
    return [Mutation(what + "-in-reference", said + ", of the reference, with a floor", need, want, change,
                     side="reference", floor="recorded"),
            Mutation(what + "-in-reference-of-a-model", said + ", of the reference, with its model", need, want, change,
                     side="reference", floor="model")]
