"""mlx.py: records a model of mlx-lm.

    from vernier_parity import mlx

    with mlx.record(model, "cand.h5"):
        model(mx.array(ids)[None], cache=cache)

Then `vernier capture ref MODEL --like cand.h5 -o ref.h5` and `vernier compare ref.h5 cand.h5 --model MODEL`. Each call
of the model is a step. Recorded are what modules with the names of transformers take and return, the rotated queries
and keys, and the logits. A quantised model computes with other weights than those of MODEL: `python -m vernier_parity
dequantize FOLDER DIR` writes these.
"""

import contextlib
from typing import Any, Dict, Iterator, List, Tuple

from .h5 import Fact
from .named import Names, ids_of, word_of
from .recorder import Recorder


@contextlib.contextmanager
def record(model: Any, path: str, *, force: bool = False, **run: Fact) -> Iterator[Recorder]:
    """Record every call of an mlx-lm model inside the block. force: replace an existing recording. run: facts.

    Modules are called through their classes, whose __call__ is replaced inside the block. Raises RecordingError: as
    Recorder.
    """
    import mlx.core as mx

    paths: Dict[int, str] = {id(m): name for name, m in model.named_modules() if name}
    turns: Dict[str, int] = {}
    classes: List[Tuple[type, Any]] = []
    facts: Dict[str, Fact] = {"engine": "mlx-lm", "precision": "f32", "engine_version": mx.__version__, **run}
    with Recorder(path, engine=str(facts.pop("engine")), precision=str(facts.pop("precision")), run=facts,
                  force=force) as rec:

        names = Names(rec, vars(model.args))

        def took(at: str, args: Tuple[Any, ...], out: Any) -> None:
            layer, _, leaf = at.partition(".self_attn.rope")
            if at != layer and not leaf:  # queries, then keys
                turns[at] = turns.get(at, 0) + 1
                names.rotated(int(layer.rpartition(".")[2]), "q_rope" if turns[at] % 2 else "k_rope", out)
            else:
                names.took(at, args[0] if args else None, out)

        def wrapped(call: Any) -> Any:
            def run_it(self: Any, *args: Any, **kwargs: Any) -> Any:
                root = self is model
                if root:
                    rec.begin_step(token_ids=ids_of(args[0]))
                    turns.clear()
                out = call(self, *args, **kwargs)
                if root:
                    if "precision" not in run:
                        rec.fact(precision=word_of(out.dtype))
                    names.put("logits", out, "batch token vocab")
                elif id(self) in paths and rec.steps:
                    took(paths[id(self)], args, out)
                return out

            return run_it

        try:
            for kind in {type(m) for _, m in model.named_modules()}:
                classes.append((kind, kind.__call__))
                setattr(kind, "__call__", wrapped(kind.__call__))
            yield rec
        finally:
            for kind, call in classes:
                setattr(kind, "__call__", call)
