"""fitted.py: mistakes at a node of any model that no table can list: what the numbers of a wrong result say of it.

Inputs that are not read or scaled, rows of a matrix in another order, exchanged experts, shifted ids.
"""

import itertools
from typing import Any, Iterator, List, Sequence, Tuple

import torch

from .tracer import Node, tensors
from .variants import Found, Variant, at_node, is_product, replacing, with_weights

MOST_INPUTS = 4096
MOST_PAIRS = 24


def of_numbers(n: Node, args: Any, kwargs: Any, place: int, out: Any, cand: Any) -> Iterator[Variant]:
    """Variants whose numbers follow from the error. out: result `place` as it should be; cand: as it is."""
    x, found = tensors((args, kwargs)), []
    if n.leaf and is_product(n.fn) and len(x) == 1:
        found += [_inputs(n, x[0], out, cand), _rows(n, out, cand)]
    if n.leaf:
        found += [_experts(n, x, out, cand), _indices(n, args, kwargs, place, out, cand)]
    return at_node(n, itertools.chain(*found))


def _inputs(n: Node, x: Any, out: Any, cand: Any) -> Found:
    """Some inputs are 0, not read, or multiplied: e = sum over j of s[j] x[j] W[:, j]."""
    w = (n.fn.weight.t() if n.op == "Conv1D" else n.fn.weight).double()  # (M,N)
    x, e = x.reshape(-1, x.shape[-1]).double(), (cand - out).reshape(-1, out.shape[-1]).double()
    if w.shape[1] > MOST_INPUTS or w.shape != (e.shape[1], x.shape[1]) or not e.isfinite().all():
        return
    gram = (x.T @ x) * (w.T @ w)
    due = (x * (e @ w)).sum(0)
    gram += 1e-9 * gram.diagonal().mean() * torch.eye(len(gram)).to(gram)
    s = torch.linalg.solve(gram, due)
    gone = (s + 1).abs() < 0.25
    for which, missing in ((gone, True), ((s.abs() > 0.1) & ~gone, False)):
        if not bool(which.any()) or bool(which.all()):
            continue
        factor = 0.0 if missing else 1 + float(s[which].median())
        call = replacing(0, lambda t, scale=torch.where(which, factor, 1.0): t * scale.to(t))
        yield ("inputs_missing", ranges(which), str(len(s)), call) if missing else (
            "inputs_scaled", ranges(which), f"{factor:.3g}", call)


def _rows(n: Node, out: Any, cand: Any) -> Found:
    """Rows of the matrix are in another order, the bias is not."""
    b = getattr(n.fn, "bias", None)
    if not isinstance(b, torch.Tensor) or out.shape[-1] > MOST_INPUTS:
        return
    y, c = ((t.double() - b.double()).reshape(-1, out.shape[-1]) for t in (out, cand))
    if not c.isfinite().all():
        return
    order = ((y * y).sum(0)[None] - 2 * c.T @ y).argmin(1)
    if order.tolist() != list(range(len(order))):
        yield "matrix_rows", moves(order.tolist()), "", with_weights(lambda q: dict(
            weight=q["weight"][:, order] if n.op == "Conv1D" else q["weight"][order]))


def _experts(n: Node, given: List[Any], out: Any, cand: Any) -> Found:
    """Two experts are exchanged: exactly the rows that one of them serves are wrong."""
    held = {k: p.shape[0] for k, p in n.fn.named_parameters(recurse=False) if p.ndim == 3}
    ids = [t for t in given if not t.is_floating_point() and t.ndim == 2]
    if len(set(held.values())) != 1 or not ids or out.reshape(-1, out.shape[-1]).shape[0] != ids[0].shape[0]:
        return
    e, f = ((t.double()).reshape(len(ids[0]), -1).pow(2).sum(1) for t in (cand - out, out))
    wrong, size = e > 1e-3 * f, next(iter(held.values()))
    serves = torch.stack([(ids[0] == k).any(1) for k in range(size)])
    found = [(float(((serves[a] | serves[b]) == wrong).double().mean()), a, b)
             for a, b in itertools.combinations(range(size), 2)]
    for right, a, b in sorted(found, key=lambda x: -x[0])[:MOST_PAIRS]:
        if right < 0.7:
            continue
        order = list(range(size))
        order[a], order[b] = b, a
        for only in ("", *sorted(held)):  # all of their weights, or one
            yield "experts", str(a), f"{b} of {only}" if only else str(b), with_weights(
                lambda q, order=order, only=only: {
                    k: p[order] for k, p in q.items() if p.ndim > 1 and p.shape[0] == size and only in ("", k)})


def _indices(n: Node, args: Any, kwargs: Any, result: int, out: Any, cand: Any) -> Found:
    """Ids or positions are off by one, perhaps from one of them on."""
    for place, t in enumerate(tensors((args, kwargs))):
        if t.dtype not in (torch.int64, torch.int32) or t.ndim < 1 or t.shape[-1] < 2:
            continue
        size, rows = getattr(n.fn, "num_embeddings", None) or 1 << 40, t.shape[-1]
        for by in (1, -1, 2, -2):
            move = lambda p, by=by, size=size: (p + by) % size
            try:
                all_moved = tensors(replacing(place, move)(n.fn, args, kwargs))
            except (RuntimeError, IndexError):
                continue
            yield "indices", f"{by:+d}", "", replacing(place, move)
            moved = all_moved[min(result, len(all_moved) - 1)]
            if moved.shape != out.shape or out.ndim < 2 or out.shape[-2] != rows:
                continue
            far, near = (((x - cand).double() ** 2).transpose(-2, 0).reshape(rows, -1).sum(1) for x in (out, moved))
            off = (near < far / 4).nonzero().flatten().tolist()
            if off and off[0] > 0:
                yield "indices", f"{by:+d}", f", from number {off[0]} on", replacing(
                    place, lambda p, move=move, first=off[0]: torch.where(
                        torch.arange(p.shape[-1], device=p.device) >= first, move(p), p))


def _runs(pairs: Sequence[Tuple[int, int]]) -> Iterator[List[Tuple[int, int]]]:
    """The pairs in stretches in which the first number rises by 1, the second always by 1 or always by -1."""
    run: List[Tuple[int, int]] = []
    for p in pairs:
        step = p[1] - run[-1][1] if run else 0
        if run and (p[0] != run[-1][0] + 1 or abs(step) != 1 or (len(run) > 1 and step != run[1][1] - run[0][1])):
            yield run
            run = []
        run.append(p)
    if run:
        yield run


def _listed(words: Sequence[str], most: int) -> str:
    return ", ".join(words[:most]) + ("..." if len(words) > most else "")


def ranges(which: Any) -> str:
    """ "0-7, 16-23" of a mask."""
    runs = _runs([(i, i) for i in which.nonzero().flatten().tolist()])
    return _listed([f"{r[0][0]}-{r[-1][0]}" if r[1:] else str(r[0][0]) for r in runs], 6)


def moves(order: List[int]) -> str:
    """ "0-15 are 15-0" of an order."""
    runs = _runs([(i, to) for i, to in enumerate(order) if i != to])
    return _listed([f"{r[0][0]}-{r[-1][0]} are {r[0][1]}-{r[-1][1]}" if r[1:] else f"{r[0][0]} is {r[0][1]}"
                    for r in runs], 4)
