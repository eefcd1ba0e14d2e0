"""rerun.py: runs the user's model again on the inputs and calls of a recording, in a format that is given."""

import contextlib
import copy
import json
import os
import re
import types
from typing import Any, Callable, Dict, Iterator, List, Optional

import torch

from . import about, calls, follow
from .candidate import Candidate
from .follow import Following
from .numbers import RecordingError
from .offload import Shelf
from .progress import progress
from .watch import replaced

FORMATS = {v: k for k, v in about.WORDS.items()}
OF_FLOAT64 = re.compile("double|float64|dtype|data type", re.IGNORECASE)  # in what torch says
Run = Optional[Callable[[Any], Any]]


def format_of(cand: Candidate) -> Any:
    """The number format of a candidate's weights, of its precision "bf16", "mixed-bf16", "autocast-bf16"."""
    word = str(cand.run.get("precision", "")).split(",")[0]
    found = FORMATS.get(word if "-" not in word else "f32")
    if found is None:
        raise RecordingError(f"{cand.path}: precision {word}: expected f32, f16, bf16 or f64")
    return found


def finer(dtype: Any) -> Any:
    """The format of the reference: float32, for a candidate of float32 float64."""
    return torch.float64 if dtype in (torch.float32, torch.float64) else torch.float32


class Models:
    """The user's model in any format: of a directory, or of a module that is given.

    No recording chooses code: a class that it names is used only if it is one of transformers for the directory's own
    model type. offload: its weights lie in a file beside the candidate.
    """

    def __init__(self, source: Any, cand: Candidate, offload: bool = False) -> None:
        self.source = source
        self.shelf = Shelf(os.path.dirname(cand.path)) if offload else None
        run = (cand.like or cand).run
        self.word, self.plain = str(run.get("model_class", "")).rpartition(".")[2], "float32_weights" not in run

    def get(self, dtype: Any) -> Any:
        if isinstance(self.source, torch.nn.Module):
            own = self.source.parameters() if self.shelf else ()
            memo = {id(p): torch.nn.Parameter(self.shelf.put(p.data.to(dtype) if p.is_floating_point() else p.data),
                                              False) for p in own}
            memo.update({id(t): t.detach() for m in self.source.modules() for t in vars(m).values()
                         if isinstance(t, torch.Tensor) and t.grad_fn is not None})  # made of weights: weight_norm
            model = converted(copy.deepcopy(self.source, memo), dtype, self.shelf,
                              self.plain and dtype != torch.float64)
        else:
            model = self._load(os.fspath(self.source), dtype)
        if dtype == torch.float64 and hasattr(model, "set_experts_implementation"):
            model.set_experts_implementation("eager")  # grouped products take no float64
        return model.eval()

    def _load(self, directory: str, dtype: Any) -> Any:
        path = os.path.join(directory, "config.json")
        try:
            with open(path, encoding="utf-8") as f:
                config = json.load(f)
        except OSError:
            raise RecordingError(_no_model(directory)) from None
        except ValueError as e:
            raise RecordingError(f"{path}: {e}") from None
        how: Dict[str, Any] = dict(local_files_only=True)
        if "_class_name" in config:
            if self.shelf:
                raise RecordingError(f"{path}: offload: of a directory, models of transformers alone")
            import diffusers

            kind = getattr(diffusers, str(config["_class_name"]), None)
            if not hasattr(kind, "from_pretrained"):
                raise RecordingError(f"{path}: diffusers has no class {config['_class_name']}")
            return kind.from_pretrained(directory, torch_dtype=dtype, **how)
        import transformers

        own = transformers.AutoConfig.from_pretrained(directory, trust_remote_code=False, **how)
        for word in (self.word, *(config.get("architectures") or [])):
            kind = getattr(transformers, word, None) if word.isidentifier() else None
            if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel) and \
                    getattr(kind, "config_class", None) is not None and isinstance(own, kind.config_class):
                break
        else:
            kind = transformers.AutoModel
        # float64 is made of float32: from_pretrained would round what it computes itself otherwise
        with self.shelf.loading() if self.shelf else contextlib.nullcontext():
            model, info = kind.from_pretrained(directory, dtype=torch.float32 if dtype == torch.float64 else dtype,
                                               attn_implementation="eager", output_loading_info=True, **how)
        if info["missing_keys"]:
            raise RecordingError(f"{directory}: it lacks {len(info['missing_keys'])} weights of {kind.__name__}, the "
                                 f"first is {sorted(info['missing_keys'])[0]}")
        return converted(model, dtype, self.shelf) if dtype == torch.float64 else model


def _no_model(path: str) -> str:
    """What a path is that is no directory of a model, and what to give instead."""
    holds = lambda name: os.path.isfile(os.path.join(path, name))
    if "://" in path or not os.path.exists(path):
        return f"{path}: no such directory, and nothing is downloaded: hf download NAME --local-dir DIR, and give DIR"
    if not os.path.isdir(path):
        return f"{path}: is a file; the model is a directory that save_pretrained() wrote"
    if holds("adapter_config.json"):
        return f"{path}: an adapter (PEFT): merge it: model.merge_and_unload().save_pretrained(DIR), and give DIR"
    if holds("model_index.json"):
        return f"{path}: a pipeline of diffusers: give the folder of the model in it that was recorded ({path}/unet)"
    return f"{path}: no config.json in this directory, which save_pretrained() writes"


def converted(model: Any, dtype: Any, shelf: Optional[Shelf] = None, plain: bool = False) -> Any:
    """The module in another format, as from_pretrained makes it: in transformers' models, rotary frequencies, buffers
    that are not saved, stay as they are, and some weights, of routers for one, are float32. shelf: where its weights
    are to lie; plain: no weight is float32 if others have 16 bits."""
    keep = {}
    if hasattr(model, "get_input_embeddings"):
        saved = model.state_dict()
        keep = {n: b.clone() for n, b in model.named_buffers() if n not in saved and (
            "freq" in n or not b.is_floating_point())}
        if hasattr(model, "_get_dtype_plan") and not plain:
            # code that widens what it multiplies with them names float32, also in float64
            plan = model._get_dtype_plan(torch.bfloat16 if dtype == torch.float64 else dtype)
            wide = [k.replace("*", ".*") for k in plan]
            keep.update({n: t.float() for n, t in saved.items() if any(re.search(k, n) for k in wide)})
        if hasattr(model, "set_attn_implementation"):
            try:
                model.set_attn_implementation("eager")
            except ValueError:  # it has one implementation
                pass
    if shelf:
        model._apply(lambda t: shelf.put(t.to(dtype)) if t.is_floating_point() else t)
    else:
        model = model.to(dtype)
    for n, t in keep.items():
        owner, _, name = n.rpartition(".")
        getattr(model.get_submodule(owner), name).data = shelf.put(t) if shelf else t
    return model


@contextlib.contextmanager
def masks_of_float32(dtype: Any, own_format: Any) -> Iterator[None]:
    """float64, of a candidate of another format, has the least and largest numbers of float32 inside, as masks are
    made of: code that makes them in float32 cannot hold its own."""
    own = torch.finfo

    def finfo(kind: Any = None) -> Any:
        found = own() if kind is None else own(kind)
        if found.bits < 64:
            return found
        return types.SimpleNamespace(**{k: getattr(own(torch.float32) if k in ("min", "max") else found, k) for k in (
            "bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")})

    with replaced(torch, "finfo", finfo) if dtype == torch.float64 != own_format else contextlib.nullcontext():
        yield


def call(model: Any, cand: Candidate, dtype: Any, run: Run) -> None:
    """Call the model on the candidate's recorded inputs, call by call. run: a function that calls it as the candidate
    did, instead. Raises RecordingError: the calls cannot be made again."""
    word, device = str(cand.run.get("precision", "")), _device(model).type
    cast = word.startswith("autocast-") and word[9:] in FORMATS and dtype == format_of(cand)
    with torch.no_grad(), torch.autocast(device, FORMATS[word[9:]] if cast else torch.bfloat16, enabled=cast):
        _restore(model, cand)
        if run is not None:
            run(model)
        else:
            _call_all(model, cand, dtype)


def _restore(model: Any, cand: Candidate) -> None:
    """The buffers that the candidate's run changed, as they were before it."""
    buffers = dict(model.named_buffers())
    for code in cand.calls[:1]:
        for name in set(code.get("zero", ())) & set(buffers):
            buffers[name].zero_()
    for step, name in cand.held:
        own = buffers.get(name[len(calls.STATE):]) if name.startswith(calls.STATE) else None
        if own is None:
            continue
        if tuple(own.shape) == cand.shape(step, name):
            own.copy_(cand.tensor(step, name))
        else:  # the run put one of another shape in its place
            owner, _, last = name[len(calls.STATE):].rpartition(".")
            model.get_submodule(owner)._buffers[last] = cand.tensor(step, name).to(own)


def again(model: Any, cand: Candidate, dtype: Any, run: Run = None, path: Optional[str] = None,
          force: bool = False, shown: str = "", floor: bool = False) -> Following:
    """The run of the model in this format on the candidate's calls, and the test that its plan's edges give its bits.
    path: also record it there. shown: what reports call that file. floor: its plan is not tested, and
    its weights are not compared with the files."""
    progress.begin(f"the model in {about.WORDS[dtype]}")
    said = (cand.like or cand).run.get("functions")
    with masks_of_float32(dtype, format_of(cand)), follow.session(
            model, path or cand.path, str(said).split() if said else None, weights=not floor, statistics=False,
            run=dict(shown_as=shown) if shown else {}, force=force, keep=True, digests=path is None,
            test=not floor) as s:
        s.expected = len(cand.rows)
        call(model, cand, dtype, run)
        if s.trace.step + 1 != cand.steps:
            raise RecordingError(f"{cand.path}: {cand.steps} steps, the model's run has {s.trace.step + 1}")
    return s


def _device(model: Any) -> Any:
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def _call_all(model: Any, cand: Candidate, dtype: Any) -> None:
    own, objects = format_of(cand), {}  # type: Any, Dict[int, Any]
    device = _device(model)
    modules = dict(model.named_modules())
    for code in cand.calls:
        step = int(code["step"])

        def tensor(name: str, kind: Any) -> Any:
            if (step, name) not in cand.held:
                raise RecordingError(f"{cand.path}: step {step}: the input {name} is not recorded")
            t = cand.tensor(step, name)
            if kind.is_complex:
                return torch.view_as_complex(t).to(device)
            if kind.is_floating_point and dtype != own:
                kind = dtype
            return t.to(kind).to(device)

        if code["path"] not in modules:
            raise RecordingError(f"{cand.path}: step {step} is a call of {code['path']}, which the model does not have")
        try:
            given = {k: calls.made(x, model, tensor, objects) for k, x in code["arguments"].items()}
            places: List[Any] = []
            while str(len(places)) in given:
                places.append(given.pop(str(len(places))))
            out = modules[code["path"]](*places, **given)
            for key, number in (code.get("returned") or {}).items():
                objects[int(number)] = out[key] if isinstance(out, dict) else out[int(key)]
        except (TypeError, ValueError, IndexError, KeyError, AttributeError, RuntimeError, OverflowError) as e:
            if isinstance(e, RecordingError):
                raise
            raise RecordingError(f"{cand.path}: step {step}: the model cannot be called with the recorded arguments: "
                                 f"{type(e).__name__}: {' '.join(str(e).split())[:200]}" + (
                                     ", in float64, as a float32 candidate is judged by"
                                     if dtype == torch.float64 != own and OF_FLOAT64.search(str(e)) else "")) from e
