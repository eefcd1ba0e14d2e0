"""places.py: mutations of places: the right numbers of another token, head, layer, point or step."""

import numpy as np

from ..mutation import ANY, NOTHING, Change, Expected, Mutation, Needs, by, in_reference, recognised


def _rows_reversed(c: Change, x: np.ndarray) -> np.ndarray:
    return x[::-1]


def _tokens_late(c: Change, x: np.ndarray) -> np.ndarray:
    return np.concatenate([x[:1], x[:-1]])


def _tokens_early(c: Change, x: np.ndarray) -> np.ndarray:
    return np.concatenate([x[1:], x[-1:]])


def _row_copied(c: Change, x: np.ndarray) -> np.ndarray:
    x[c.T // 2] = x[c.T // 2 - 1]
    return x


def _tokens_swapped(c: Change, x: np.ndarray) -> np.ndarray:
    a, b = c.T // 2, c.T // 2 - 1
    x[[a, b]] = x[[b, a]]
    return x


def _first_for_last(c: Change, x: np.ndarray) -> np.ndarray:
    x[-1] = x[0]
    return x


def _off_by_one(c: Change, x: np.ndarray) -> np.ndarray:
    flat = x.reshape(-1)
    return np.concatenate([flat[1:], flat[-1:]]).reshape(x.shape)


def _pairs_swapped(c: Change, x: np.ndarray) -> np.ndarray:
    flat = x.reshape(-1).copy()
    pairs = flat[: flat.size // 2 * 2].reshape(-1, 2)
    pairs[:] = pairs[:, ::-1].copy()
    return flat.reshape(x.shape)


def _transposed(c: Change, x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.T).reshape(x.shape)


def heads_swapped(c: Change, x: np.ndarray) -> np.ndarray:
    heads = x.reshape(c.T, c.H, c.K)
    heads[:, [0, 1]] = heads[:, [1, 0]]
    return x


def _heads_reversed(c: Change, x: np.ndarray) -> np.ndarray:
    return x.reshape(c.T, c.H, c.K)[:, ::-1].reshape(x.shape)


def _heads_first(c: Change, x: np.ndarray) -> np.ndarray:
    return x.reshape(c.T, c.H, c.K).transpose(1, 0, 2).reshape(x.shape)


def _halves_interleaved(c: Change, x: np.ndarray) -> np.ndarray:
    heads, half = x.reshape(-1, c.K).copy(), c.K // 2
    heads[:, : 2 * half] = heads[:, : 2 * half].reshape(-1, 2, half).transpose(0, 2, 1).reshape(-1, 2 * half)
    return heads.reshape(x.shape)


def to_others(c: Change, x: np.ndarray) -> np.ndarray:
    """The numbers of the other tensor."""
    assert c.y is not None
    return c.y


def _half_others(c: Change, x: np.ndarray) -> np.ndarray:
    assert c.y is not None
    x[c.T // 2:] = c.y[c.T // 2:]
    return x


_T, _H, _S = Needs.TENSOR, Needs.HEADS, Needs.SCORES

MUTATIONS = [
    Mutation("rows-reversed", "tokens in reverse order", _T, recognised("reversed"), _rows_reversed, eight=True),
    Mutation("tokens-late", "shifted by one token", _T, recognised("shifted"), _tokens_late),
    Mutation("tokens-early", "shifted by one token, the other way", _T, recognised("shifted"), _tokens_early),
    Mutation("row-copied", "one token's row is its neighbour's", _T, by("worst_token_nmse"), _row_copied, eight=True),
    Mutation("tokens-swapped", "two tokens exchanged", _T, by("worst_token_nmse"), _tokens_swapped, eight=True),
    Mutation("first-for-last", "the last token's row is the first one's", _T, by("worst_token_nmse"), _first_for_last),
    Mutation("off-by-one", "read with an offset of one number", _T, by("nmse"), _off_by_one),
    Mutation("pairs-swapped", "even and odd channels interchanged", _T, by("nmse"), _pairs_swapped),
    Mutation("transposed", "stored column by column, with the old shape", _T, by("nmse"), _transposed),
    Mutation("heads-swapped", "two heads exchanged", _H, recognised("heads"), heads_swapped),
    Mutation("heads-first", "heads before tokens, with the old shape", _H, recognised("permuted"), _heads_first),
    Mutation("halves-interleaved", "the halves of each head interleaved", _H, by("nmse"), _halves_interleaved),

    Mutation("other-layer", "the numbers of the same point of another layer", Needs.LAYERS, recognised("own"),
             to_others),
    Mutation("other-layer-in-both", "the numbers of the same point of another layer on both sides", Needs.LAYERS,
             Expected(metric="nmse", many=True, anywhere=True), to_others, side="both"),
    Mutation("other-point", "the numbers of another point of the layer", Needs.PAIR, recognised("own"), to_others),
    Mutation("half-other-point", "half overwritten by another point", Needs.PAIR, by("nmse"), _half_others),
    Mutation("stale-step", "the numbers of the step before", Needs.STEPS, ANY, to_others),
    Mutation("stale-step-in-both", "the numbers of the step before on both sides", Needs.STEPS, NOTHING, to_others,
             side="both"),

    Mutation("scores-late", "logits shifted by one token", _S, by("kl_mean"), _tokens_late),
    *in_reference("tokens-late", "shifted by one token", _T, _tokens_late),
    *in_reference("heads-reversed", "heads in reverse order", _H, _heads_reversed),
    *in_reference("other-point", "the numbers of another point of the layer", Needs.PAIR, to_others),
]
