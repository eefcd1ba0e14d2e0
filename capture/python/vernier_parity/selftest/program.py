"""program.py: runs the program: `vernier compare`, and what the self-test needs to record and to look at recordings."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import threading
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Set

import vernier_program

from ..numbers import RecordingError


class Failed(RecordingError):
    """A run of the program gave no result: one line."""


@dataclass
class Compared:
    """What `vernier compare` said: the exit status, its report, and (without one) its line of error."""

    status: int
    report: Optional[Dict[str, Any]]
    line: str

    @property
    def lines(self) -> List[str]:
        """The reasons of a refusal."""
        listed: List[str] = (self.report or {}).get("refusals") or []
        return listed or [self.line]

    @property
    def lacks_memory(self) -> bool:
        """Whether the line says so; a path with that word does not."""
        return re.search(r"(?<![\w/.-])memory(?![\w/-]|\.\w)", self.line) is not None


def find_program(given: Optional[str]) -> str:
    """The path of the program: the given one, that of the wheel, or the one on the PATH."""
    found = given or vernier_program.find()
    if not found:
        raise Failed("no program vernier on the PATH (--vernier PATH names it)")
    if not shutil.which(found):
        raise Failed(f"{found}: no such program")
    return found


class Program:
    """The program; `stop` ends the runs that other threads wait for."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._running: Set["subprocess.Popen[str]"] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for p in self._running:
                p.kill()

    def _run(self, words: List[str]) -> "subprocess.CompletedProcess[str]":
        with self._lock:
            if self._stopped:
                raise Failed("stopped")
            try:
                p = subprocess.Popen([self.path, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, encoding="utf-8", errors="surrogateescape")
            except OSError as e:
                raise Failed(f"{self.path}: {e.strerror}") from None
            self._running.add(p)
        try:
            out, err = p.communicate()
        finally:
            with self._lock:
                self._running.discard(p)
        return subprocess.CompletedProcess(words, p.returncode, out, err)

    def make(self, *words: str) -> None:
        """Record a run, or write a model."""
        done = self._run(list(words))
        if done.returncode:
            raise Failed(_last(done.stderr, words[0]))

    def show(self, path: str) -> Dict[str, Any]:
        done = self._run(["show", _plain(path), "--format", "json"])
        if done.returncode:
            raise Failed(_last(done.stderr, "show"))
        return _parsed(done.stdout, "show")

    def compare(self, ref: str, cand: str, *, floor: Optional[str] = None, model: Optional[str] = None,
                limits: Optional[str] = None, itself: bool = False, threads: int = 1) -> Compared:
        """A comparison without replay, which would find some of the mistakes without any limit."""
        words = ["compare", _plain(ref), _plain(cand), "--format", "json", "--threads", str(threads)]
        words += ["--floor", floor] if floor else []
        words += ["--model", model, "--no-replay"] if model else []
        words += ["--limits", limits] if limits else []
        words += ["--allow", "itself"] if itself else []
        done = self._run(words)
        report = _parsed(done.stdout, "compare") if done.stdout else None
        with reading("compare"):
            verdict = report["verdict"] if report is not None else "trouble"
            expected = {"within": 0, "known": 0, "outside": 1}.get(verdict, 2)
        if done.returncode != expected:
            raise Failed(f"vernier compare ended with {done.returncode}: {_last(done.stderr, 'compare')}")
        return Compared(done.returncode, report, _last(done.stderr, "compare"))


def _plain(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path


def _parsed(text: str, what: str) -> Dict[str, Any]:
    try:
        parsed: Dict[str, Any] = json.loads(text)
    except ValueError:
        raise Failed(f"vernier {what}: its report is not JSON") from None
    if not isinstance(parsed, dict):
        raise Failed(f"vernier {what}: its report is not an object of JSON")
    return parsed


@contextlib.contextmanager
def reading(what: str) -> Iterator[None]:
    """Around what reads a report of the program: another version may lack a key, or have another type there."""
    try:
        yield
    except Failed:  # it says why itself
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as e:
        raise Failed(f"vernier {what}: its report is not that of this version: {type(e).__name__} {e}") from None


def _last(err: str, command: str) -> str:
    """The line of error: the first one that is neither a warning nor a note."""
    start = f"vernier {command}: "
    lines = [line[len(start):] for line in err.splitlines() if line.startswith(start)]
    lines = [line for line in lines if not line.startswith(("warning: ", "note: "))]
    return lines[0] if lines else "no message"
