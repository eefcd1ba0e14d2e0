"""progress.py: a line on stderr that says how far a long work is. Commands turn it on where stderr is a terminal."""

import sys
import time

EVERY = 0.1  # seconds


class Progress:
    on = False

    def __init__(self) -> None:
        self._what, self._said, self._open = "", 0.0, False

    def begin(self, what: str) -> None:
        """The next work."""
        self.end()
        self._what = what

    def at(self, done: int, of: int) -> None:
        """So many operations of the work are done."""
        if self.on and (done == of or time.monotonic() - self._said > EVERY):
            print(f"\r{self._what}: {done} of {of} operations\x1b[K", end="", file=sys.stderr, flush=True)
            self._said, self._open = time.monotonic(), True

    def end(self) -> None:
        if self._open:
            print(file=sys.stderr, flush=True)
        self._open = False


progress = Progress()
