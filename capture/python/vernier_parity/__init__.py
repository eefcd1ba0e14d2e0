"""vernier_parity: records the tensors that an engine computes, and reads such recordings.

    with vernier_parity.record(model, "cand.h5", points="layer*.{q,k}_rope"):  # a HuggingFace causal LM
        model(ids)

    with vernier_parity.Recorder("cand.h5", engine="mine", precision="f32", token_ids=ids) as rec:  # any engine
        rec.put("layer3.q_rope", array, dims="token head dim")

    vernier_parity.open("cand.h5")["layer3.q_rope"]  # a numpy array

`vernier compare ref.h5 cand.h5` compares two recordings. The package needs h5py, numpy and xxhash; record() also needs
torch and transformers. It works without xxhash, but then recordings have neither digests nor a table of weights.
"""

import os
from typing import TYPE_CHECKING, Any, ContextManager, Mapping, Optional, Union

from .any_model import explain, isolate, reference, replay
from .globs import match
from .numbers import Diverged, RecordingError
from .printed import warn
from .reading import Recording, open
from .recorder import Recorder

if TYPE_CHECKING:
    from .follow import Functions
    from .numbers import Ids
    from .session import Layers, Points
    from .watch import Session

__all__ = ["Diverged", "Recorder", "Recording", "RecordingError", "explain", "isolate", "match", "open", "record",
           "reference", "replay"]
__version__ = "0.1.0"


def record(model: Any, path: str, points: "Points" = None, *, layers: "Layers" = None, tokens: Optional[str] = None,
           weights: Union[bool, str] = True, statistics: bool = False,
           run: Optional[Mapping[str, Union[str, int, float]]] = None,
           force: bool = False, against: Optional[str] = None, keep_above: Optional[float] = None,
           stop_at_first: bool = False, before: Optional["Ids"] = None,
           functions: "Functions" = None, any: bool = False,
           replace: Optional[Mapping[str, str]] = None) -> "ContextManager[Session]":
    """Record every forward pass of a PyTorch model inside the `with` block; each call of the model is a step.

    model       any torch.nn.Module. Of GPT-2, Llama, Mistral, Mixtral, OLMoE, Qwen2, Qwen3, Qwen3-MoE, Gemma 2 and 3,
                gpt-oss, DeepSeek-V2 and V3 and the text models of Qwen3.5 the points of vernier's own reference are
                recorded; of any other model (or with `functions` or `any`) the results of its leaves, which are modules
                none of whose children has weights, and its own results
    path        the checkpoint file; until the block ends without an exception it is named PATH.partial
    points      a glob of checkpoint names, or several: "layer*.{q,k}_rope" (`vernier points MODEL` lists the names);
                default: the points that `vernier capture` records. expert_out runs the experts once more per slot of
                a token; without "layer*.expert_out" among the points they run once
    layers      only these layers, from 0: "A-B" (both included) or a number
    tokens      only the rows of these tokens, from 0: "A-B" (both included) or "last"
    weights     also record a digest and statistics of each weight, which reads all of them once, also those that
                accelerate offloaded. If a weight cannot be read, a warning says so, and the table is left out. A path:
                also write the weights there, as numbers to compute with if they are quantised (torchao, quanto,
                bitsandbytes): a model directory that `vernier capture ref` reads
    statistics, run, force, against, keep_above, stop_at_first
                as of Recorder. Statistics take a tenth of the time of a forward pass over few tokens. Diverged is
                raised from inside the model's forward pass
    functions   of any model: also record the results of functions: globs of names, "model.layers.3.*", or "all"
    any         record a model of these families as any other model
    replace     of any model: a recording by the path of a module, {"model.layers.3.mlp": "ref.h5"}: what the module
                gives to others gets the numbers that are recorded there
    before      the token ids, (N) or (B, N), that the cache holds before the first call inside the block: the recording
                begins with the call that filled it, of which it keeps nothing

    The block gets a Session: `names` lists the checkpoints that each call records, `fact(name=value)` adds facts,
    `differs` names the first tensor that differed from `against`.

    Raises Diverged: see stop_at_first. RecordingError: the file exists; a model of another kind; a model compiled by
    torch.compile; a glob or range that selects nothing; a call without token ids; a beam search; no call inside the
    block. Then there is no file PATH; an interrupted run leaves PATH.partial.

    Checkpoints for which the model has no module are left out with a warning, and listed in the fact not_hooked.

    A batch is recorded with its padding, on either side. Padding at the end of a row also changes the states that Gated
    DeltaNet layers return; the state after the row's last token is recomputed and recorded instead.

    Recording does not change the results. Hooks only read; functions that hooks cannot see (RoPE, attention, delta
    rule) are wrapped inside the block. The attribute `how` of each tensor says which way it was captured: hook,
    patched, or recomputed from what was captured.
    """
    if isinstance(model, (str, os.PathLike)):
        raise RecordingError("record(model, path): the model comes first")
    import torch  # torch is needed only here

    from . import about, follow, session
    from .families import FAMILIES
    from .places import parts_of

    if not isinstance(model, torch.nn.Module):
        raise RecordingError(f"{type(model).__name__} is no PyTorch model; record() knows {', '.join(FAMILIES)}, and "
                             f"any other torch.nn.Module (another engine: vernier_parity.Recorder)")
    path = os.fspath(path)
    random = about.dropping(model)
    if random:
        warn(f"vernier_parity: {path}: {random} drops values at random, since the model is in training mode: call "
             f"model.eval() first", stacklevel=2)
    how = dict(statistics=statistics, run=run or {}, force=force, against=against, keep_above=keep_above,
               stop_at_first=stop_at_first)
    parts = None if any or functions is not None or replace else parts_of(model)
    if parts is not None:
        return session.session(parts, path, points, layers=layers, tokens=tokens, weights=weights, before=before, **how)
    if points is not None or layers is not None or tokens is not None or before is not None or isinstance(weights, str):
        raise RecordingError(f"{path}: points, layers, tokens, before and a path of weights are for the families that "
                             f"vernier knows; functions= selects what is recorded of any other model")
    return follow.session(model, path, functions, weights=weights, replace=replace, **how)
