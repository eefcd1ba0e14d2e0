"""any_model.py: reference, replay and explain of a recording of any PyTorch model, as functions and as commands."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence

from .h5 import refuse_taken
from .numbers import RecordingError
from .printed import printed
from .progress import progress
from .reading import Recording
from .selftest.program import find_program

if TYPE_CHECKING:
    from .isolating import Isolated

Run = Optional[Callable[[Any], Any]]


def reference(model: Any, cand: str, path: str, *, run: Run = None, force: bool = False,
              offload: bool = False) -> List[str]:
    """Record the reference of a candidate: the model in float32 (float64 for a float32 candidate) on the candidate's
    recorded inputs and calls.

    model  a directory that transformers or diffusers loads, or a module in any format, which is copied
    cand   the candidate, recorded by record()
    path   the file to write
    run    a function that calls the model as the candidate did: for calls that a file cannot describe
    offload  the model is larger than memory: its weights lie in a file beside the candidate, and only those of the
             leaf that is computed are held in memory

    Returns the nodes whose bits do not follow from the plan's edges; nothing is judged by them. Raises RecordingError:
    the model cannot be loaded, or called with the recorded arguments; the file exists (force replaces it).

    /plan/sources of the file says which tensors of the directory's files each weight is. Weights with other numbers
    are written beside it, as PATH with the ending safetensors.
    """
    from .candidate import Candidate  # torch is needed only here
    from .quantised import write_safetensors
    from .rerun import Models, again, finer, format_of

    refuse_taken(path, force)
    with Candidate(cand) as c:
        dtype = finer(format_of(c))
        done = again(Models(model, c, offload).get(dtype), c, dtype, run, path, force)
    if done.rest:
        write_safetensors(os.path.splitext(path)[0] + ".safetensors", done.rest)
    return done.not_reproduced


def replay(model: Any, cand: str, path: str, *, verdict: Optional[str] = None, run: Run = None,
           force: bool = False, offload: bool = False, like: Optional[str] = None) -> int:
    """Compute each recorded result of a candidate from its own results before it, along the reference's operations,
    for `vernier compare REF CAND --replayed PATH`. Arguments as of reference(). Returns of how many wrong results not
    every known mistake was tried, which would take too long.

    verdict  a report of `vernier compare --format json`: what it calls wrong is computed in place of given in a second
             round, in which another order of the same work is right, and with each known mistake, for --explain
    like     a recording made by record(), for a candidate that another program has written (`vernier import`) under the
             names of that recording: its inputs and its plan are taken
    """
    from . import replayed
    from .candidate import Candidate
    from .replaying import Replay
    from .rerun import Models

    refuse_taken(path, force)
    with Candidate(cand, like) as c:
        return replayed.write(Replay(Models(model, c, offload), c, run), path, verdict, force)


def explain(model: Any, cand: str, report: Optional[str] = None, *, options: Sequence[str] = (),
            program: Optional[str] = None, run: Run = None, offload: bool = False,
            like: Optional[str] = None, say: Callable[[str], None] = lambda text: None) -> int:
    """Reference, replay and `vernier compare` in one: writes the report, or prints it. Returns the exit status of
    compare.

    options  of `vernier compare`; program: the vernier program; say: is told what is being done

    Of a recording under standard names, of a family that vernier knows, vernier's own engine is the reference, which
    stays beside the candidate: cand.ref.h5.
    """
    from . import replayed, sources
    from .candidate import Candidate, is_of_a_family
    from .replaying import Replay
    from .rerun import Models

    if not like and isinstance(model, (str, os.PathLike)) and is_of_a_family(cand):
        return _by_engine(find_program(program), os.fspath(model), cand, report, options)
    with tempfile.TemporaryDirectory() as folder, Candidate(cand, like) as c:
        ref, first, second, said = (os.path.join(folder, n) for n in ("ref.h5", "replayed.h5", "again.h5", "said.json"))
        source = os.fspath(model) if isinstance(model, (str, os.PathLike)) else type(model).__name__
        program = find_program(program)
        if _is_refused(program, cand, [*options, *(["-o", report] if report else [])]):
            return 2
        r = Replay(Models(model, c, offload), c, run, ref, shown=source)
        if r.fine.run.not_reproduced:
            say(f"not reproduced by the plan's edges: {', '.join(r.fine.run.not_reproduced[:5])}")
        progress.end()
        say(f"replay: {len(r.judged)} results, {len(r.unjudged)} not judged")
        shown = f"a replay of {source}"
        replayed.write(r, first, shown=shown)
        compare, last = [program, "compare", ref, cand], list(options)
        if sources.few_differ(c.sources, r.fine.run.sources):  # which they are is said
            last += ["--allow", "weights"]
        end = [*last, "--explain", *(["-o", report] if report else [])]
        done = subprocess.run([*compare, "--replayed", first, "--format", "json", "-o", said,
                               *(end if report else last)], stdout=subprocess.PIPE, check=False)
        if done.returncode == 1 and _origins(said):
            _tell_cut(replayed.write(r, second, said, shown=shown))
            progress.end()
            return subprocess.run([*compare, "--force", "--replayed", second, *end], check=False).returncode
        if report or done.returncode > 1:
            print(done.stdout.decode().replace(said + ", ", ""), end="")
            return done.returncode
        return subprocess.run([*compare, "--replayed", first, *end], check=False).returncode


def _is_refused(program: str, cand: str, options: Sequence[str]) -> bool:
    """Whether compare refuses its options, which it has then said: before the model runs. Others end at a reference
    that is not there."""
    missing = "no-such-reference.h5"
    done = subprocess.run([program, "compare", missing, cand, *options], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)
    said = done.stderr.decode(errors="replace")
    if missing in said or done.returncode != 2:
        return False
    print(said, end="", file=sys.stderr)
    return True


def _capture(model: str, cand: str, path: str) -> List[str]:
    return ["capture", "ref", model, "--like", cand, "-o", path, "--force"]


def _reference_beside(model: str, cand: str) -> Optional[str]:
    """Where the reference of a candidate stays, because the commands that a report proposes name it: cand.ref.h5. None:
    another file has that name, also one that other options made, or the folder takes none."""
    path = f"{os.path.splitext(cand)[0]}.ref.h5"
    if not os.path.lexists(path):
        return path if os.access(os.path.dirname(path) or ".", os.W_OK) else None
    try:
        with Recording(path) as r:
            ours = shlex.split(str(r.run.get("command", "")))[1:] == _capture(model, cand, path)
    except (OSError, RecordingError, ValueError):
        return None
    return path if ours else None


def _by_engine(program: str, model: str, cand: str, report: Optional[str], options: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        ref = _reference_beside(model, cand) or os.path.join(folder, "ref.h5")
        status = subprocess.run([program, *_capture(model, cand, ref)], check=False).returncode
        return status or subprocess.run([program, "explain", ref, cand, "--model", model, *options,
                                         *(["-o", report] if report else [])], check=False).returncode


def isolate(model: Any, cand: str, *, run: Run = None, offload: bool = False,
            like: Optional[str] = None) -> "Isolated":
    """Find the fewest modules whose errors are the divergence: with what the reference makes in their place, the
    model's results are within 4 floors. The candidate is not run again: its errors are added to the reference's run,
    operation by operation. Arguments as of reference().
    """
    from .candidate import Candidate
    from .replaying import Replay
    from .rerun import Models
    from .isolating import Isolated

    with Candidate(cand, like) as c:
        return Isolated(Replay(Models(model, c, offload), c, run))


def _isolated(found: "Isolated") -> int:
    print(f"results: {found.floors:.3g} floors")
    if found.within:
        return 0
    if not found.modules:
        print("no module alone brings the results within 4 floors: record with functions=\"all\"")
    for path in found.modules:
        print(printed(path))
    if found.modules:
        print(f"replaced by the reference: {found.repaired:.3g} floors")
    return 1


def tell(text: str) -> None:
    print(printed(f"vernier_parity: {text}"), file=sys.stderr)


def _tell_cut(results: int) -> None:
    if results:
        tell(f"of {results} wrong results, not every mistake was tried: that takes too long")


def _origins(path: str) -> bool:
    with open(path, encoding="utf-8") as f:
        try:
            return bool(json.load(f).get("origins"))
        except ValueError:
            return False


def command(word: str, argv: Sequence[str], parser: Any) -> int:
    """The commands of `python -m vernier_parity` that need torch. Returns the exit status."""
    args = parser(prog=f"python -m vernier_parity {word}", description=(
        {"reference": reference, "replay": replay, "explain": explain, "isolate": isolate}[word].__doc__ or "").split(
            "\n\n")[0])
    args.add_argument("model", help="a directory that transformers or diffusers loads")
    if word == "reference":
        args.add_argument("--like", dest="cand", required=True, help="the candidate")
    else:
        args.add_argument("cand", help="the candidate, recorded by vernier_parity.record()")
        args.add_argument("--like", help="a recording by record(), whose inputs and plan the candidate has, which "
                          "another program has written under its names (vernier import)")
    if word != "isolate":
        args.add_argument("-o", "--output", required=word != "explain", help="the file to write")
        args.add_argument("--force", action="store_true", help="replace it")
    if word == "replay":
        args.add_argument("--again", help="a report of `vernier compare --format json`, for a second round")
    if word == "explain":
        args.add_argument("--vernier", help="the vernier program")
    args.add_argument("--offload", action="store_true", help="the model is larger than memory: its weights lie in a "
                      "file beside the candidate")
    o, rest = args.parse_known_args(argv)
    if rest and word != "explain":
        args.error(f"unknown option {rest[0]}")
    if os.path.isfile(o.model) and os.path.isdir(o.cand):
        args.error("the model comes first, then the candidate")
    progress.on = sys.stderr.isatty()
    try:
        if word == "explain":
            return explain(o.model, o.cand, o.output, options=[*rest, *(["--force"] if o.force else [])],
                           program=o.vernier, offload=o.offload, like=o.like,
                           say=tell if sys.stderr.isatty() else lambda text: None)
        if word == "isolate":
            found = isolate(o.model, o.cand, offload=o.offload, like=o.like)
            progress.end()
            return _isolated(found)
        if word == "replay":
            _tell_cut(replay(o.model, o.cand, o.output, verdict=o.again, force=o.force, offload=o.offload,
                             like=o.like))
            return 0
        bad = reference(o.model, o.cand, o.output, force=o.force, offload=o.offload)
        if bad:
            tell(f"{o.output}: the bits of {len(bad)} nodes do not follow from the plan's edges, the first is {bad[0]}")
        return 0
    finally:
        progress.end()
