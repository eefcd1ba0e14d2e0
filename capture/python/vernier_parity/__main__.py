"""python -m vernier_parity FILE [NAME]: print the contents of a recording, or one tensor.
python -m vernier_parity selftest [REF [CAND]]: check that comparisons can fail.
python -m vernier_parity dequantize SOURCE DIR: write the weights of a quantised model as plain numbers.
python -m vernier_parity reference | replay | explain | isolate MODEL_DIR ...: judge one of any PyTorch model."""

import argparse
import difflib
import os
import shlex
import sys
import traceback
from typing import NoReturn, Optional, Sequence, TextIO

import numpy as np

from . import RecordingError, __version__, open as open_recording
from .printed import printed


MODEL_COMMANDS = ("reference", "replay", "explain", "isolate")
COMMANDS = ("selftest", "dequantize", *MODEL_COMMANDS)


def say(text: str, to: Optional[TextIO] = None) -> None:
    """Print a line with strings of a file or of the command line."""
    print(printed(text), file=to or sys.stdout)


class Arguments(argparse.ArgumentParser):
    """Its errors repeat what was typed."""

    def error(self, message: str) -> NoReturn:
        super().error(printed(message))


def dequantize(argv: Sequence[str]) -> int:
    from .quantised import command

    args = Arguments(prog="python -m vernier_parity dequantize", description="Write the weights of a quantised model "
                     "as plain numbers: a model directory that `vernier capture ref` reads.")
    args.add_argument("source", help="a folder of mlx-lm, an ONNX model (MatMulNBits) beside its config.json, or a "
                      "HuggingFace directory with a quantization_config, which transformers loads")
    args.add_argument("dir", help="the directory to write")
    o = args.parse_args(argv)
    say(f"{o.dir}: {command(o.source, o.dir)} weights")
    return 0


def show(words: Sequence[str]) -> int:
    args = Arguments(prog="python -m vernier_parity",
                                   description="Show what a recording holds, or one tensor of it. "
                                   "To compare two recordings, use `vernier compare`. `selftest` instead of FILE "
                                   "checks that such comparisons can fail (`selftest --help`), "
                                   "`dequantize SOURCE DIR` writes the weights of a quantised model; `reference`, "
                                   "`replay`, `explain` and `isolate` judge a recording of any PyTorch model.")
    args.add_argument("file", help="a recording")
    args.add_argument("name", nargs="?", help="a checkpoint, layer3.q_rope or step.2/layer3.q_rope")
    args.add_argument("--version", action="version", version=f"vernier-parity {__version__}")
    o = args.parse_args(words)
    with open_recording(o.file) as rec:
        if o.name is not None:
            try:
                a = rec[o.name]
            except KeyError as e:
                raise RecordingError(e.args[0]) from None
            say(f"{o.name} {a.dtype} {a.shape} {rec.attributes(o.name).get('axes', '')}")
            for line in np.array2string(a, threshold=64, precision=6).split("\n"):
                say(line)
            return 0
        say(f"{o.file}: {'complete' if rec.complete else 'INCOMPLETE'}; "
            f"{rec.steps} step{'' if rec.steps == 1 else 's'}"
            f"{f', {rec.token_ids.shape[-1]} tokens' if rec.has_ids else ''}")
        for key, value in rec.run.items():
            say(f"  {key:<16} {value}")
        for name in rec.names():
            a = rec[name]
            say(f"  {name:<28} {str(a.dtype):<8} {a.shape}")
    return 0


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Returns the exit status: 2 after one line on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["selftest"]:  # also beside a file of that name, which a shell may just have made for the output
        from .selftest.command import main as selftest
        return selftest(words[1:])
    try:
        if words[:1] == ["dequantize"]:
            return dequantize(words[1:])
        if words[:1] and words[0] in MODEL_COMMANDS:
            from .any_model import command
            return command(words[0], words[1:], Arguments)
        if words[:1] == ["record"] and not os.path.isfile("record"):
            raise RecordingError("record is a function: with vernier_parity.record(model, FILE): model(ids), around "
                                 "a call in your own program (vernier help pytorch.md)")
        if words and words[0].isalpha() and not os.path.isfile(words[0]):  # probably a command of the program vernier
            near = difflib.get_close_matches(words[0], COMMANDS, 1)
            raise RecordingError(f"{words[0]}: no such file; " +
                                 (f"did you mean {near[0]}?" if near else
                                  f"commands here are {', '.join(COMMANDS)}; those of the program: "
                                  f"vernier {shlex.join(words)}"))
        return show(words)
    except BrokenPipeError:
        raise
    except ModuleNotFoundError as e:
        say(f"vernier_parity: {e}; to install it: {shlex.quote(sys.executable)} -m pip install {e.name}", sys.stderr)
        return 2
    except (RecordingError, ImportError, OSError) as e:
        say(f"vernier_parity: {e}", sys.stderr)
        return 2


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the pipe has ended: `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except Exception:  # Python would end with 1, which is a verdict of `explain`
        for text in traceback.format_exc().splitlines():
            say(text, sys.stderr)
        status = 2
    sys.exit(status)
