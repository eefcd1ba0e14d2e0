"""files.py: mutations of files: truncated, damaged, unfinished, or with links to elsewhere."""

import os
from typing import Callable, Union

import h5py
import numpy as np

from ..edit import Edit
from ..mutation import Change, Expected, Mutation, Needs, fails, refused

# ---- as bytes ----------------------------------------------------------------------------------


def _cut(size_of: Callable[[int], int]) -> Callable[[str], None]:
    return lambda path: os.truncate(path, size_of(os.path.getsize(path)))


def _folder(path: str) -> None:
    os.unlink(path)
    os.mkdir(path, 0o700)


def _pointer(path: str) -> None:
    with open(path, "w") as f:
        f.write("version https://git-lfs.github.com/spec/v1\n")


def _overwritten(at: int, data: bytes) -> Callable[[str], None]:
    def change(path: str) -> None:
        with open(path, "r+b") as f:
            f.seek(at)
            f.write(data)
    return change


# ---- as HDF5 -----------------------------------------------------------------------------------


def _sets(at: str, key: str, value: Union[str, int, None]) -> Callable[[Edit, Change], None]:
    """Sets an attribute; at "": of the target."""
    return lambda e, c: e.attribute(at or c.at, key, value)


def _stored(way: str) -> Callable[[Edit, Change], None]:
    """Stores the numbers of the target in another way."""
    def change(e: Edit, c: Change) -> None:
        assert c.target
        e.replace(c.at, c.raw, c.target.dtype, c.raw.shape, way)
    return change


def _soft_link(e: Edit, c: Change) -> None:
    e.link(c.at, h5py.SoftLink(c.there))


def _dangling_link(e: Edit, c: Change) -> None:
    e.link(c.at, h5py.SoftLink("/nowhere"))


def _external_link(e: Edit, c: Change) -> None:
    e.link(c.at, h5py.ExternalLink(c.side.path, c.at))


def _circle(e: Edit, c: Change) -> None:
    """A group that contains itself."""
    assert c.target
    e.link(f"/step.{c.target.step}/layer7777", f"/step.{c.target.step}")


def _rot(e: Edit, c: Change) -> None:
    """Bytes that changed after the run, under the old digest."""
    assert c.target
    e.numbers(c.at, c.other_raw, c.target.dtype, honest=False)


def _last_bit(e: Edit, c: Change) -> None:
    assert c.target
    raw = c.raw.copy()
    raw.reshape(-1).view(np.uint8)[raw.nbytes // 2 // raw.itemsize * raw.itemsize] ^= 1
    e.numbers(c.at, raw, c.target.dtype, honest=False)


_T, _P = Needs.TENSOR, Needs.PAIR
_WRONG_DIGEST = refused("digest", "do not match its digest")

MUTATIONS = [
    Mutation("absent", "no file", want=fails("No such file"), file=os.unlink),
    Mutation("empty-file", "an empty file", want=fails("is empty"), file=_cut(lambda size: 0)),
    Mutation("folder", "a directory of that name", want=fails("is a folder"), file=_folder),
    Mutation("pointer", "a Git LFS pointer", want=fails("not an HDF5 file"), file=_pointer),
    Mutation("truncated", "the second half is missing", want=fails(": cut: "), file=_cut(lambda size: size // 2)),
    Mutation("byte-less", "the last byte is missing", want=fails(": cut: "), file=_cut(lambda size: size - 1)),
    Mutation("head-alone", "cut to 96 bytes", want=fails(": cut: "), file=_cut(lambda size: 96)),
    Mutation("signature", "another signature", want=fails("not an HDF5 file"), file=_overwritten(0, b"x" * 8)),
    Mutation("superblock", "the superblock overwritten", want=fails("HDF5"), file=_overwritten(8, b"\xff" * 88)),
    Mutation("incomplete", "the run was interrupted", want=refused("incomplete", "incomplete"),
             edit=_sets("/", "complete", 0)),
    Mutation("incomplete-reference", "the reference's run was interrupted", want=refused("incomplete", "incomplete"),
             edit=_sets("/", "complete", 0), side="reference"),
    Mutation("complete-unsaid", "no mark that the run is complete", want=fails("complete"),
             edit=_sets("/", "complete", None)),
    Mutation("format", "another format's name", want=fails("not a recording"), edit=_sets("/", "format", "someone's")),
    Mutation("version", "a later version of the format", want=fails("format_version"),
             edit=_sets("/", "format_version", 2)),
    Mutation("soft-link", "a soft link to another tensor", _P, fails("a soft link"), edit=_soft_link),
    Mutation("dangling-link", "a soft link to nowhere", _T, fails("a soft link"), edit=_dangling_link),
    Mutation("external-link", "a link into another file", _T, fails("an external link"), edit=_external_link),
    Mutation("circle", "a group inside itself", _T, fails("a group with two names"), edit=_circle),
    Mutation("elsewhere", "numbers in another file", _T, fails("in another file"), edit=_stored("elsewhere")),
    Mutation("virtual", "a view of another dataset", _T, fails("virtual"), edit=_stored("virtual")),
    Mutation("unwritten", "numbers that were never written", _T, fails("never written"), edit=_stored("unwritten")),
    Mutation("chunk-missing", "a chunk of them was never written", _T, fails("stored"), edit=_stored("gap")),
    Mutation("packed-chunk-missing", "the same, compressed", _T, fails("never written"), edit=_stored("packed-gap")),
    Mutation("packed-rot", "a changed byte in compressed numbers", _T, Expected("unreadable"), edit=_stored("rotten")),
    Mutation("rot", "numbers changed, digest kept", _P, _WRONG_DIGEST, edit=_rot, claim="digest"),
    Mutation("bit", "the last bit of a number flipped, digest kept", _T, _WRONG_DIGEST, edit=_last_bit, claim="digest"),
    Mutation("bit-reference", "the same in the reference", _T, _WRONG_DIGEST, edit=_last_bit, claim="digest",
             side="reference"),
    Mutation("digest", "a malformed digest", _T, fails("digest"), edit=_sets("", "digest", "0123")),
    Mutation("statistics", "a negative number of NaN", _T, fails("nan -1"), edit=_sets("", "nan", -1),
             claim="statistics"),
]
