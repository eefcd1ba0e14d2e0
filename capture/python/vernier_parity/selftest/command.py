"""command.py: python -m vernier_parity selftest [REF [CAND]]: its options, and several comparisons at a time."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, List, NoReturn, Optional, Sequence

from ..globs import compiled, match
from ..numbers import RecordingError
from ..printed import printed
from .attempt import attempt, unchanged
from .judge import Outcome
from .pair import Pair
from .program import Failed, Program, find_program
from .report import ROWS, Result, write_json, write_text
from .runs import OwnRuns

ABOUT = """Make every known mistake (a mutation) in a copy of correct recordings, compare each copy with `vernier
compare`, and check that each mutation is reported at the right checkpoint with the right metric. REF and CAND are two
recordings that are within their limits. REF alone is compared with itself. Without REF, vernier makes recordings of a
small synthetic model in every precision."""


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Signalled(BaseException):
    """A signal ends the command."""


class _Signals:
    """Ends the command at the first signal, but not while it makes or removes its folder. (A mask of signals would not
    do: it does not hold for the threads of BLAS.)"""

    def __init__(self) -> None:
        self.number, self._held = 0, True  # the first signal; whether it waits

    def __call__(self, number: int, frame: Any) -> None:
        if not self.number:
            self.number = number
            self.check()

    def hold(self) -> None:
        self._held = True

    def release(self) -> None:
        self._held = False
        self.check()

    def check(self) -> None:
        if self.number and not self._held:
            raise _Signalled


class _Arguments(argparse.ArgumentParser):
    """Its errors repeat what was typed."""

    def error(self, message: str) -> NoReturn:
        super().error(printed(message))


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    a = _Arguments(prog="python -m vernier_parity selftest", description=ABOUT,
                   epilog="Exit status: 0 all caught and no false alarm, 1 something was missed, 2 trouble.")
    a.add_argument("ref", nargs="?", metavar="REF", help="a correct recording")
    a.add_argument("cand", nargs="?", metavar="CAND", help="one that is within its limits. Default: REF itself")
    a.add_argument("--floor", metavar="FILE",
                   help="a recording of the reference in the candidate's precision. Small changes of a 16-bit run can "
                   "be seen only in units of a floor, and are not tried without one. Default: none")
    a.add_argument("--model", metavar="MODEL", help="the model that REF was run with, for mutations of REF that only a "
                   "run of its model shows. Default: none")
    a.add_argument("--limits", metavar="FILE", help="test these limits. Default: the shipped ones")
    a.add_argument("--only", metavar="GLOB", help="make only these mutations, such as 'numbers/*'. Default: all")
    a.add_argument("--format", choices=("text", "json"), default="text",
                   help="form of the report. Default: text. JSON has the schema vernier-selftest/2")
    a.add_argument("--jobs", metavar="N", type=int, help="comparisons at a time. Default: one per processor")
    a.add_argument("--vernier", metavar="PATH", help="the program. Default: that of the installed package, or vernier")
    o = a.parse_args(words)
    if not o.ref and (o.floor or o.model):
        a.error(f"{'--floor' if o.floor else '--model'} needs the recordings REF and CAND")
    if o.jobs is not None and o.jobs < 1:
        a.error(f"--jobs takes a whole number from 1, not {o.jobs}")
    if o.only is not None:
        try:
            compiled(o.only)
        except RecordingError as e:
            a.error(f"--only: {e}")
    return o


def main(words: Sequence[str]) -> int:
    """Returns 0, 1, or 2 after one line on stderr."""
    o = _arguments(words)
    signals = _Signals()
    before = {n: signal.signal(n, signals) for n in SIGNALS if signal.getsignal(n) != signal.SIG_IGN}
    try:
        r = _run(o, signals)
    except RecordingError as e:
        if not signals.number:
            print(f"vernier_parity selftest: {e}", file=sys.stderr)
            return 2
    except _Signalled:
        pass
    finally:
        for number, how in before.items():
            signal.signal(number, how)
    if signals.number:
        signal.signal(signals.number, signal.SIG_DFL)
        os.kill(os.getpid(), signals.number)
    (write_json if o.format == "json" else write_text)(r, sys.stdout)
    return 1 if r.count("missed") else 0


def _make_folder() -> str:
    try:
        return tempfile.mkdtemp(prefix="vernier-selftest-")
    except OSError as e:
        raise Failed(f"{e.filename}: cannot create a directory there: {e.strerror}") from None


def _remove(folder: str) -> None:
    """Processes that were killed may still write to it, but not for long."""
    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(0.05)


def _run(o: argparse.Namespace, signals: _Signals) -> Result:
    program = Program(find_program(o.vernier))
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = o.jobs or processors
    pool, folder = ThreadPoolExecutor(jobs), None
    try:
        folder = _make_folder()
        signals.release()
        pairs = (OwnRuns(program, folder, pool).pairs(o.limits, pool) if not o.ref
                 else [Pair(program, "own", o.ref, o.cand or o.ref, o.floor, o.model, o.limits)])
        r = Result(pairs, _try_all(pairs, o.only, folder, max(1, processors // jobs), pool))
        if not r.tried:
            raise Failed(f"--only '{o.only}' leaves no mutation to try" if o.only
                         else f"{o.ref} holds no tensor that a mutation can change")
        for p in pairs:
            p.close()
        return r
    finally:
        signals.hold()
        program.stop()
        pool.shutdown(cancel_futures=True)
        if folder:
            _remove(folder)


def _try_all(pairs: List[Pair], only: Optional[str], folder: str, threads: int, pool: Executor) -> List[List[Outcome]]:
    of_pairs = list(pool.map(lambda p: unchanged(p, threads), pairs))
    for i, p in enumerate(pairs):
        if p.steps and of_pairs[i].kind == "caught":
            of_pairs[i] = unchanged(p.steps, threads)
        elif p.steps:
            p.steps = None
    jobs = [[pool.submit(attempt, p.steps if m.when and p.steps else p, m, folder, threads)
             if only is None or match(only, f"{group}/{m.name}") else None for group, m in ROWS] for p in pairs]
    done, n = 0, sum(j is not None for of in jobs for j in of)
    outcomes = []
    for first, of in zip(of_pairs, jobs):
        outcomes.append([first])
        for j in of:
            outcomes[-1].append(j.result() if j else Outcome("elsewhere"))
            done += j is not None
            if j and sys.stderr.isatty():
                print(f"\r{done} of {n} mutations", end="\n" if done == n else "", file=sys.stderr, flush=True)
    return outcomes
