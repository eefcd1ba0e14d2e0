"""about.py: facts about a transformers model and its run: directory, config, precision, device."""

import collections
import json
import os
import platform
import re
from typing import Any, Dict, Mapping, Optional, Set, Tuple

import torch

from . import h5, weights as table
from .rows import setting

WORDS = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64"}
ELSEWHERE = {"dtype", "torch_dtype", "_name_or_path", "architectures", "transformers_version", "model_type",
             "use_cache"}

# The releases of transformers that the recorder's tests run with: the oldest that has every family,
# the one that made the tests' data, the newest known.
TESTED = ("5.2.0", "5.17.0", "5.24.0")


def version() -> str:
    """The installed release of transformers."""
    import transformers

    return str(transformers.__version__)


def releases() -> str:
    """The installed release of transformers and the tested ones, for an error that another release may have caused."""
    number = lambda release: [int(x) for x in re.findall(r"[0-9]+", release)[:3]]
    has = version()
    known = number(TESTED[0]) <= number(has) <= number(TESTED[-1])
    return (f"transformers {has}{'' if known else ', which this recorder does not know'}; "
            f"tested: {', '.join(TESTED)}")


def directory_of(model: Any) -> Optional[str]:
    """The directory that the model was loaded from, or None if it is not on this machine."""
    name = getattr(model.config, "_name_or_path", "") or getattr(model, "name_or_path", "")
    if not name or os.path.isfile(os.path.join(name, "config.json")):
        return name or None
    try:
        from transformers.utils import cached_file

        found = cached_file(name, "config.json", local_files_only=True,
                            revision=getattr(model.config, "_commit_hash", None))
    except Exception:  # not in the cache
        return None
    return os.path.dirname(found) if found else None


def config_of(model: Any, directory: Optional[str]) -> Tuple[str, str]:
    """(text of config.json, names of the settings that differ in memory). The text is verbatim if none differs."""
    if directory is not None:
        from transformers import AutoConfig

        text = model.config.get_text_config()
        ours = text.to_dict()
        files = AutoConfig.from_pretrained(directory, local_files_only=True).get_text_config().to_dict()
        other = [k for k in ours if k not in ELSEWHERE and ours[k] != files.get(k, ours[k])]
        if not other:
            return table.config_of(directory), ""
        whole, values = json.loads(table.config_of(directory)), json.loads(text.to_json_string(use_diff=False))
        inner = whole["text_config"] if isinstance(whole.get("text_config"), dict) else whole
        inner.update({k: values.get(k) for k in other})
        if "rope_parameters" in other:  # it replaces these settings
            for k in ("rope_theta", "rope_scaling"):
                inner.pop(k, None)
        return json.dumps(whole, indent=2, sort_keys=True), ", ".join(sorted(other))
    return model.config.to_json_string(use_diff=False), ""


def model_facts(model: Any, family: str, weights: bool, known: bool = False) -> Tuple[Dict[str, Any], str]:
    """(arguments of Recorder.model(), names of the settings that differ in memory). family: if the config has none;
    known: vernier has it."""
    config, directory, changed = getattr(model, "config", None), None, ""
    if hasattr(config, "to_json_string") and hasattr(config, "get_text_config"):
        directory = directory_of(model)
        said, changed = config_of(model, directory)
        family = json.loads(said).get("model_type") or family
    else:
        said = json.dumps({str(k): setting(v) for k, v in config.items()} if isinstance(config, Mapping) else {},
                          indent=2)
    return dict(directory=directory, family=family, config=said,
                weights=table.of_memory(model, directory, family if known else "") if weights else []), changed


def recording(kind: Any, path: str, said: Dict[str, h5.Fact], model: Any, run: Mapping[str, h5.Fact],
              **how: Any) -> Any:
    """A recorder of this kind for a run of a torch model. said: its facts, engine and precision among them, that others
    of `run` replace."""
    attention = getattr(getattr(model, "config", None), "_attn_implementation", None)
    facts = {**said, **({"attn_implementation": str(attention)} if attention else {}),
             "torch_version": torch.__version__, "threads": torch.get_num_threads(), **run}
    return kind(path, engine=str(facts.pop("engine")), precision=str(facts.pop("precision")), run=facts, **how)


def dropping(model: Any) -> Optional[str]:
    """The first module that would drop values at random, since it is in training mode."""
    for name, m in model.named_modules():
        own = ["p"] if isinstance(m, torch.nn.modules.dropout._DropoutNd) else []
        shares = [getattr(m, key, None) for key in (*own, "dropout", "attention_dropout")]
        if m.training and any(isinstance(p, float) and p > 0 for p in shares):
            return name or type(m).__name__
    return None


def plain_word(model: Any) -> str:
    """The number format of most of a module's weights."""
    count: "collections.Counter[Any]" = collections.Counter()
    for t in (*model.parameters(), *model.buffers()):
        count[t.dtype] += t.numel() * t.is_floating_point()
    kind = max(count, key=lambda k: count[k]) if any(count.values()) else torch.float32
    return WORDS.get(kind, str(kind).rpartition(".")[2])


def call_word(device: Any) -> Optional[str]:
    """"autocast-bf16" where torch chooses a format for each operation there, now; None where it does not."""
    if not torch.is_autocast_enabled(device.type):
        return None
    return "autocast-" + WORDS.get(torch.get_autocast_dtype(device.type), "other")


def run_word(word: str, seen: Set[Any]) -> str:
    """The precision of a run whose weights have the precision `word`, given the formats of its
    tensors. A run of f32 weights with some tensors in 16 bits (modules of another format, partial
    autocast) is "mixed-bf16"."""
    narrow = [WORDS[d] for d in (torch.bfloat16, torch.float16) if d in seen]
    return "mixed-" + narrow[0] if narrow and word in ("f32", "f64") else word


def inputs_format(model: Any) -> str:
    """The format to which all products of a quantised model round their inputs, as a role of the precision:
    ",linear=int8-inputs" (torchao's dynamic int8: a scale for each token); "" where some do otherwise."""
    how = [getattr(m.weight, "act_quant_kwargs", None) for m in model.modules() if isinstance(m, torch.nn.Linear)]
    by_token = [type(h).__name__ == "QuantizeTensorToInt8Kwargs" and type(h.granularity).__name__ == "PerRow"
                and h.mapping_type.name == "SYMMETRIC" and not h.reduce_range for h in how]
    return ",linear=int8-inputs" if by_token and all(by_token) else ""


def device_name(device: Any) -> str:
    """"cuda NVIDIA H100", "cpu x86_64"."""
    return f"{device.type} {torch.cuda.get_device_name(device) if device.type == 'cuda' else platform.machine()}"
