"""call.py: a forward pass of a model while it is recorded: what the hooks of session.py find out about it, and the
wrappers of wrapped.py read."""

import abc
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from .modules import Parts


class Call(abc.ABC):
    """The call that runs; between calls, the next one."""
    path: str  # of the recording
    parts: Parts
    # keys and values of layers with a window, if they are to be recorded
    history: Dict[str, Tuple[Any, Any]]

    def forget(self) -> None:
        """Another call begins."""
        self.waiting: Set[str] = set()  # checkpoints that this call has not recorded yet
        self.layer: Optional[int] = None  # the layer whose mixer runs
        self.past = self.tokens = 0  # tokens before this call, and in it
        self.qkv: Optional[Any] = None
        self.lengths: Optional[List[Tuple[Any, Any]]] = None  # what l2norm took and returned
        self.trailing: Optional[Any] = None  # (B, T), True at padding after the last token of each row

    @abc.abstractmethod
    def put(self, name: str, tensor: Callable[[], Any], how: str) -> None:
        """Record a tensor that a hook or wrapper got, batch first, if this call has not recorded it yet. It is copied
        at once."""
