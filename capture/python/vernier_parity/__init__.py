"""vernier_parity: records what an engine computes, and reads such recordings.

    with vernier_parity.record(model, "cand.h5", points="layer*.{q,k}_rope"):     a HuggingFace causal LM
        model(ids)

    with vernier_parity.Recorder("cand.h5", engine="mine", precision="f32", token_ids=ids) as rec:     any engine
        rec.put("layer3.q_rope", array, dims="token head dim")

    vernier_parity.open("cand.h5")["layer3.q_rope"]                               a numpy array

The file is specs/checkpoint.md of vernier; `vernier compare ref.h5 cand.h5` judges it. Needs h5py and numpy; torch
and transformers only for record(); xxhash, where it is installed, for digests.
"""

from typing import TYPE_CHECKING, Any, ContextManager, Mapping, Optional, Union

from .globs import match
from .numbers import RecordingError
from .reading import Recording, open
from .recorder import Recorder

if TYPE_CHECKING:
    from .session import Layers, Points, Session

__all__ = ["Recorder", "Recording", "RecordingError", "match", "open", "record"]
__version__ = "0.1.0"


def record(model: Any, path: str, points: "Points" = None, *, layers: "Layers" = None, tokens: Optional[str] = None,
           weights: bool = True, statistics: bool = False, run: Optional[Mapping[str, Union[str, int, float]]] = None,
           force: bool = False) -> "ContextManager[Session]":
    """Record the forward passes of a HuggingFace causal LM that happen inside the block, each call a step.

    model    GPT-2, Llama, Mistral, Qwen2, Qwen3 or the text of Qwen3.5; any dtype, any device, any attention
    path     the checkpoint file; it appears under this name when the block ends well
    points   a glob of checkpoint names or several ("layer*.{q,k}_rope"; `vernier points MODEL` lists the names);
             without it every point that `vernier capture` records by default
    layers   "A-B", or a number: of the points inside layers, these
    tokens   "last" or "A-B": the rows of these tokens
    weights  False leaves out the table of weights (a digest and statistics of each), which reads all of them once, also
             those that accelerate offloaded; where nobody knows them there is no table, with a warning
    statistics  minimum, mean, NaN and so on of each tensor in the file, for `vernier show`; they take a tenth of a forward
             pass over few tokens. A comparison computes its own
    run      strings and numbers of your own that explain the run, by name
    force    replace a recording that exists; other files are never replaced

    Raises RecordingError: a model of another kind, or compiled; a file that exists; a glob that selects nothing; a call without
    token ids; no call inside the block. Nothing is left under `path` then; a run that was cut off leaves PATH.partial.

    What the model has no module for is left out with a warning, and named in the attribute not_hooked of /run. A beam search
    and a model compiled by torch.compile are refused.

    A batch is recorded with its padding, before its rows or behind them, whatever mask the model was given. The states of a
    Gated DeltaNet that a call leaves have taken in the padding behind a row; recorded is that behind the row's last token,
    recomputed.

    The numbers of the run do not change: hooks look on, and the functions of the model that no hook sees (the rotation,
    the attention, the delta rule) are wrapped while the block lasts. Every tensor says how it was had, in its attribute
    `how`: hook, patched, or recomputed from what was seen.
    """
    from .session import session  # torch is needed only here

    return session(model, path, points, layers=layers, tokens=tokens, weights=weights, statistics=statistics, run=run or {}, force=force)
