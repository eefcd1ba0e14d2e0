"""any_help.py: what the tests of recordings of any PyTorch module share: their list, small modules, refusals."""

import contextlib
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.abspath(os.path.join(HERE, "..", "..", "capture", "python"))
sys.path[:0] = [HERE, PACKAGE]

import needs_transformers  # noqa: E402, F401
import torch  # noqa: E402
import vernier_parity  # noqa: E402
from vernier_parity import RecordingError  # noqa: E402

TESTS = []


def test(f):
    TESTS.append(f)
    return f


@contextlib.contextmanager
def refused(word):
    try:
        yield
    except RecordingError as e:
        assert word in str(e), f"said {e}; expected {word}"
        assert "\n" not in str(e), "more than one line"
        return
    raise AssertionError(f"not refused; expected {word}")


def recorded(model, path, *args, **how):
    with torch.no_grad(), vernier_parity.record(model, path, **{"any": True, **how}):
        return model(*args)


def main():
    torch.set_num_threads(1)
    wanted, bad = sys.argv[2:], 0
    for f in TESTS:
        if wanted and f.__name__ not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                f(folder)
                print(f"ok      {f.__name__}", flush=True)
            except Exception as e:
                bad += 1
                import traceback
                traceback.print_exc()
                print(f"FAILED  {f.__name__}: {type(e).__name__}: {str(e)[:600]}", flush=True)
    print(f"{bad} failed")
    return 1 if bad else 0
