#!/usr/bin/env python3
"""python_recorder.py VERNIER: the Python package without torch: Recorder, open and globs.

python_recorder_files.py tests the file that it writes, python_recorder_against.py a run that is judged meanwhile.

An engine in numpy (unrelated_run.py, which shares no code with us) is recorded by vernier_parity.Recorder in float32,
float16, bfloat16 and float64, at once and in steps, and `vernier compare` judges it against the reference; `vernier
show --check` finds nothing broken. vernier_parity.open reads what vernier writes, and what Recorder wrote. The points
of each family are those of `vernier points`, globs select as `--points` does, and errors are refused with one line
each. 77: skipped.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "..", "..", "capture", "python")
sys.path[:0] = [PACKAGE] + [os.path.join(HERE, "..", "..", folder) for folder in ("support", "attack")]
try:
    import h5py
    import numpy as np

    import vernier_parity
    from vernier_parity import globs, numbers, points, texts, weights
except ImportError as e:
    print(f"SKIPPED: no {e.name} in this Python")
    sys.exit(77)
import unrelated_run
from hostile_text import BYTES, TEXT, forbidden

FIXTURES = os.path.join(HERE, "..", "..", "..", "fixtures")
MODEL = os.path.join(FIXTURES, "qwen2-trained")
IDS = [int(x) for x in open(os.path.join(FIXTURES, "prompts", "p017.ids"), encoding="ascii").read().split(",")]
WITHIN, OUTSIDE = 0, 1


def program(*args):
    return subprocess.run([os.environ["VERNIER_PROGRAM"], *args], capture_output=True, text=True)


def bf16(a):
    """Rounded to the nearest bfloat16, ties to even, as float32."""
    u = np.asarray(a, np.float32).view(np.uint32)
    return ((u + 0x7FFF + (u >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def at(self, name):
        return os.path.join(self.folder.name, name)

    def bytes_of(self, name):
        with open(self.at(name), "rb") as f:
            return f.read()

    def reference(self, name="ref.h5", model=MODEL, *more):
        done = program("capture", "ref", model, "--ids", ",".join(map(str, IDS)), "-o", self.at(name), "--force",
                       "--threads", "1", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.at(name)

    def recorder(self, name="cand.h5", **more):
        return vernier_parity.Recorder(self.at(name),
                                       **{**dict(engine="numpy", precision="f32", token_ids=IDS, force=True), **more})

    def refuses(self, words, f, *args, **more):
        with self.assertRaises(vernier_parity.RecordingError) as e:
            f(*args, **more)
        self.assertIn(words, str(e.exception))
        self.assertNotIn("\n", str(e.exception))


class Manners(Files):
    def test_an_existing_file_stays_unless_forced(self):
        with self.recorder() as r:
            r.put("logits", np.ones((len(IDS), 8), "f4"))
        before = self.bytes_of("cand.h5")
        self.refuses("exists already; force=True", self.recorder, force=False)
        self.assertEqual(self.bytes_of("cand.h5"), before)
        self.recorder(force=True).close(well=False)

    def test_force_replaces_recordings_alone(self):
        with open(self.at("cand.h5"), "wb") as f:
            f.write(b"GGUF of 40 GB")
        self.refuses("is not a recording", self.recorder, force=True)
        self.assertEqual(self.bytes_of("cand.h5"), b"GGUF of 40 GB")

    def test_an_unknown_keyword_is_refused(self):
        with self.assertRaises(TypeError):
            self.recorder(purpose="a fact goes into run")
        with self.recorder(run={"purpose": "a test"}) as r:
            r.put("logits", np.ones((len(IDS), 8), "f4"))
        with vernier_parity.open(self.at("cand.h5")) as rec:
            self.assertEqual(rec.run["purpose"], "a test")

    def test_a_name_that_is_nearly_ours_is_warned_of_once(self):
        with self.recorder() as r:
            with self.assertWarnsRegex(UserWarning,
                                       "layer0.q_rop: no checkpoint has this name; did you mean layer0.q_rope"):
                r.put("layer0.q_rop", np.ones((len(IDS), 2, 4), "f4"), dims="token head dim")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                r.put("layer1.q_rop", np.ones((len(IDS), 2, 4), "f4"), dims="token head dim")
                r.put("my.own.tensor", np.ones((len(IDS), 2), "f4"), dims="token x")
                r.put("blk.3.rope", np.ones((len(IDS), 2), "f4"), dims="token x")
                r.put("model.layers.0.self_attn.q_proj", np.ones((len(IDS), 2), "f4"), dims="token x")

    def test_a_wrong_layer_prefix_is_warned_of(self):
        a = np.ones((len(IDS), 2, 4), "f4")
        meant = {"layers0.q_proj": "layer0.q_proj", "Layer1.q_proj": "layer1.q_proj", "blk.2.q_proj": "layer2.q_proj",
                 "layer.3.q_proj": "layer3.q_proj",
                 "layer04.q_proj": "layer4.q_proj", "layer_5.q_prj": "layer5.q_proj",
                 "model.layers.6.q_proj": "layer6.q_proj", "q_proj": "layer0.q_proj", "layer3.logits": "logits"}
        for i, (name, said) in enumerate(meant.items()):
            with self.recorder(f"{i}.h5") as r, self.assertWarnsRegex(UserWarning, f": {name}: no checkpoint has this "
                                                                      f"name; did you mean {said}[?]") as w:
                r.put(name, a, dims="token head dim")
            self.assertEqual(w.filename, __file__)
        with self.recorder() as r, self.assertWarnsRegex(UserWarning, "did you mean layer1.input"):
            r.put("layer0.output", a[:, 0])
            r.alias("layers1.input", "layer0.output")

    def test_help_names_shapes_and_errors_of_everything(self):
        import inspect

        public = {n: getattr(vernier_parity, n) for n in vernier_parity.__all__}
        for kind in (vernier_parity.Recorder, vernier_parity.Recording):
            for n, f in vars(kind).items():
                if (not n.startswith("_")
                    or n in ("__init__", "__getitem__")) and (callable(f) or isinstance(f, property)):
                    public[f"{kind.__name__}.{n}"] = f
        self.assertGreater(len(public), 15)
        for name, what in public.items():
            self.assertTrue(inspect.getdoc(what) and "self)" not in inspect.getdoc(what), name)
            source = inspect.getsource(what.fget if isinstance(what, property) else what)
            if not inspect.isclass(what) and "raise RecordingError" in source:
                self.assertIn("RecordingError:", what.__doc__, name)
        for n in ("Recorder.alias", "Recorder.begin_step", "Recorder.model", "Recorder.close", "open",
                  "Recording.__init__"):
            self.assertIn("Raises RecordingError:", public[n].__doc__, n)
        self.assertIn("Raises KeyError:", public["Recording.__getitem__"].__doc__)

    def test_the_releases_of_transformers_are_those_that_are_tested(self):
        with open(os.path.join(FIXTURES, "transformers.txt"), encoding="utf-8") as f:
            lines = dict(line.split()[:2] for line in f if line.strip() and not line.startswith("#"))
        with open(os.path.join(FIXTURES, "requirements.txt"), encoding="utf-8") as f:
            pinned = re.search("^transformers==(.*)$", f.read(), re.M)[1]
        oldest, newest = (lines[k].partition("==")[2] for k in ("oldest", "newest"))
        with open(os.path.join(PACKAGE, "vernier_parity", "about.py"), encoding="utf-8") as f:  # it needs torch
            tested = re.search(r"^TESTED = \((.*)\)$", f.read(), re.M)[1]
        self.assertEqual(re.findall('"(.*?)"', tested), [oldest, pinned, newest])
        with open(os.path.join(PACKAGE, "pyproject.toml"), encoding="utf-8") as f:
            self.assertIn(f"transformers>={oldest.rpartition('.')[0]}\"", f.read())

    def test_a_closed_recording_takes_nothing_more(self):
        r = self.recorder()
        r.put("logits", np.ones((len(IDS), 8), "f4"))
        r.close()
        for f, args in ((r.put, ("embed", np.ones((len(IDS), 8), "f4"))), (r.alias, ("layer0.input", "logits")),
                        (r.begin_step, ()),
                        (r.model, (MODEL,))):
            self.refuses("the recording is closed", f, *args)
        self.refuses("the recording is closed", r.fact, purpose="late")
        r.close()

    def test_nothing_is_printed_that_a_terminal_would_obey(self):
        """Every message that names a file, a tensor, a fact or an argument, with hostile ones; every form of
        `python -m vernier_parity`."""
        import h5py

        text = TEXT.replace("/", "") + "\nforged line"
        other, folder = self.at("hostile.h5"), self.at(text.encode()[:200].decode("utf-8", "ignore"))
        os.mkdir(folder)
        with self.recorder() as r:
            r.put("logits", np.ones((len(IDS), 8), "f4"))
        with h5py.File(self.at("cand.h5"), "a") as f:
            f["run"].attrs[text[:30]], f["run"].attrs["engine"], f["run"].attrs["b"] = 1, text, np.bytes_(BYTES)
            f.copy("step.0/logits", "step.0/" + text)
            f["step.0"][text].attrs["axes"] = text
            f.copy("step.0/logits", "step.0/text")
            del f["step.0/text"]
            f["step.0/text"] = np.array([text], h5py.string_dtype())
        os.rename(self.at("cand.h5"), other)
        shutil.copy(other, os.path.join(folder, "a.h5"))

        def module(*args):
            done = subprocess.run([sys.executable, "-m", "vernier_parity", *args], capture_output=True,
                                  env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "400"})
            for data in (done.stdout, done.stderr):
                self.assertIsNone(forbidden(data), (args, data))
                self.assertNotIn(b"\nforged line", data)
            return done

        shown = module(other)
        self.assertIn(b"\\nforged line", shown.stdout)
        self.assertEqual([shown.returncode, *(module(other, name).returncode for name in (text, "text"))], [0, 0, 0])
        for args in ((os.path.join(folder, "a.h5"),), (text,), (other, text + "x"), (other, "step." + text + "/x"),
                     (other, "step.7/" + text), (other, "a", text), ("--" + text,), (folder,), (b"\xff\x1b[2J",),
                     (other, b"\xff\x1b[2J")):
            module(*args)
        module("compare", text, "b")
        said = []

        def refused(f, *args, **more):
            with self.assertRaises((vernier_parity.RecordingError, KeyError)) as e, \
                    warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                f(*args, **more)
            said.extend([e.exception.args[0], *(str(w.message) for w in warned)])

        bad = os.path.join(folder, "b.h5")
        for f in (lambda: vernier_parity.open(bad), lambda: self.recorder("hostile.h5", against=bad),
                  lambda: vernier_parity.Recorder(os.path.join(bad, "c"), engine="m", precision="f32"),
                  lambda: vernier_parity.Recorder(folder, engine="m", precision="f32"),
                  lambda: self.recorder(run={text: 1}), lambda: self.recorder(run={"a": text * 5000}),
                  lambda: self.recorder(run={text: None}), lambda: globs.match("{" + text, "x"),
                  lambda: vernier_parity.open(other)[text + "x"],
                  lambda: vernier_parity.open(other)["step.x" + text + "/a"],
                  lambda: weights.config_of(folder), lambda: weights.family_of(folder, "[" + text)):
            refused(f)
        with vernier_parity.Recorder(bad, engine="m", precision="f32", token_ids=[1]) as r:
            for name in (text, "layer0." + text, "layer0.q_rop", text[:40]):
                with warnings.catch_warnings(record=True) as warned:
                    warnings.simplefilter("always")
                    for how in (lambda: r.put(name, np.ones((2, 2), "f4"), text), lambda: r.put("logits", [[1]], text),
                                lambda: r.put(name, np.ones((1, 2), "f4"), "token x", op=text),
                                lambda: r.put(name, np.ones((1, 2), "f4"), "token x", source_line=text),
                                lambda: r.put("logits", np.array([text])), lambda: r.alias(name, text),
                                lambda: r.model(family=text, config="{}", weights={text: np.ones(3)})):
                        try:
                            how()
                        except vernier_parity.RecordingError as e:
                            said.append(str(e))
                said.extend(str(w.message) for w in warned)
            r.put("embed", np.ones((1, 2), "f4"))
        said.append(str(vernier_parity.Diverged(text, text, text)))
        said.append(repr(vernier_parity.open(os.path.join(folder, "a.h5"))))
        self.assertGreater(len(said), 35)
        for line in said:
            self.assertIsNone(forbidden(line.encode()), line)
            self.assertNotIn("\n", line)

    def test_a_shim_that_starts_the_command_again_is_no_program(self):
        """pyenv's shim, a script on the PATH, runs the environment's own command, which becomes the first on the PATH;
        a script that runs the program is used."""
        os.mkdir(self.at("shims"))
        own, shim = self.at("own"), self.at("shims/vernier")
        for path, words in ((own, f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {PACKAGE!r})\n"
                             "import vernier_program\nsys.exit(vernier_program.main())\n"),
                            (shim, f'#!/bin/sh\nexec "{own}" "$@"\n')):
            with open(path, "w", encoding="utf-8") as f:
                f.write(words)
            os.chmod(path, 0o755)
        where = {**os.environ, "PATH": os.path.dirname(shim) + os.pathsep + os.environ["PATH"]}
        start = lambda: subprocess.run([shim, "--version"], capture_output=True, text=True, timeout=20,
                                       env={**where, "PATH": os.path.dirname(shim) + ":/bin"})
        self.assertIn("only the recorder for Python is installed here", start().stderr)
        with open(own, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nexec "{os.environ["VERNIER_PROGRAM"]}" "$@"\n')
        self.assertEqual(start().stdout, program("--version").stdout)

    def test_the_module_shows_a_recording(self):
        with self.recorder() as r:
            r.put("logits", np.ones((len(IDS), 8), "f4"))
        def module(*args):
            return subprocess.run([sys.executable, "-m", "vernier_parity", *args], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertIn("logits", module(self.at("cand.h5")).stdout)
        self.assertIn("token vocab", module(self.at("cand.h5"), "logits").stdout)
        wrong = module(self.at("cand.h5"), "logit")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("no checkpoint named logit in step 0; did you mean logits?", wrong.stderr)
        wrong = module("compare", "a b.h5", "c.h5", "--model", "M")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertTrue(wrong.stderr.endswith("; those of the program: vernier compare 'a b.h5' c.h5 --model M\n"),
                        wrong.stderr)
        self.assertIn("no such file; did you mean selftest?", module("selftes").stderr)
        with subprocess.Popen([sys.executable, "-m", "vernier_parity", self.at("cand.h5")], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as cut_short:
            cut_short.stdout.close()
            self.assertEqual((cut_short.stderr.read(), cut_short.wait()), (b"", 0))

    def test_show_has_statistics_that_the_file_has_not(self):
        with self.recorder(statistics=False) as r:
            r.put("logits", np.full((len(IDS), 8), 2.5, "f4"))
        line = [x for x in program("show", self.at("cand.h5")).stdout.splitlines() if " logits " in x][0]
        self.assertEqual(line.split()[-6:], ["2.5"] * 4 + ["0", "0"])


class Engine(Files):
    def record(self, precision, faults={}, calls=((0, 17),), **more):
        store = {"f32": np.float32, "f16": np.float16, "bf16": np.float32, "f64": np.float64}[precision]
        made = unrelated_run.engine(MODEL, IDS, faults, store)
        with self.recorder(precision=precision, run={"made_by": "a test"}, **more) as r:
            r.model(MODEL)
            for first, last in calls:
                if len(calls) > 1:
                    r.begin_step(last - first)
                for name, (a, axes) in made.items():
                    a = bf16(a) if precision == "bf16" else a
                    r.put(name, a[first:last], dims=axes, dtype=precision if precision == "bf16" else None)
                    if name.endswith(".output") or name == "embed":
                        n = 0 if name == "embed" else int(name.split(".")[0][5:]) + 1
                        if n < 2:
                            r.alias(f"layer{n}.input", name)
            self.differed = r.differs
        return self.at("cand.h5"), made


class AnEngineInNumpy(Engine):
    def test_is_within_limits_in_every_format(self):
        ref = self.reference()
        for precision in ("f32", "f16", "f64"):
            cand, made = self.record(precision)
            limits = os.path.join(FIXTURES, "..", "specs", "limits", "fp32.yaml")
            more = ["--limits", limits] if precision == "f64" else ["--model", MODEL] if precision == "f16" else []
            done = program("compare", ref, cand, *more)
            self.assertEqual(done.returncode, WITHIN, done.stdout + done.stderr)
            self.assertIn("33 checkpoints compared", done.stdout)
            done = program("show", "--check", cand)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with vernier_parity.open(cand) as r:
                self.assertEqual(sorted(r.names()), sorted([*made, "layer0.input", "layer1.input"]))
                for name, (a, axes) in made.items():
                    np.testing.assert_array_equal(r[name], a)
                    self.assertEqual(r.attributes(name)["axes"], axes)
                np.testing.assert_array_equal(r["layer1.input"], r["layer0.output"])

    def test_a_run_of_mixed_formats_is_judged_by_the_coarser(self):
        made, ref = unrelated_run.engine(MODEL, IDS, {}, np.float32), self.reference()
        for rounded, refused in ((0, True), (3, False)):
            with self.recorder(precision="autocast-bf16") as r:
                for i, (name, (a, axes)) in enumerate(made.items()):
                    if i % 10 < rounded:
                        r.put(name, bf16(a), dims=axes, dtype="bf16")
                    else:
                        r.put(name, a, dims=axes)
            done = program("compare", ref, self.at("cand.h5"), "--allow", "missing", "--model", MODEL)
            if refused:
                self.assertIn("claims precision autocast-bf16, but its numbers are f32", done.stdout + done.stderr)
            else:
                self.assertEqual(done.returncode, WITHIN, done.stdout + done.stderr)
                self.assertIn("bf16.yaml", done.stdout)

    def test_tokens_have_the_text_that_the_tokenizer_gives_them(self):
        with self.recorder(token_ids=[*range(300)]) as r:
            r.model(MODEL)
            r.put("embed", np.ones((300, 1), "<f4"))
        program("capture", "ref", MODEL, "--ids", ",".join(map(str, range(300))), "--points", "embed", "--force", "-o",
                self.at("ref.h5"))
        with h5py.File(self.at("cand.h5")) as ours, h5py.File(self.at("ref.h5")) as due:
            self.assertEqual(list(ours["run/token_text"]), list(due["run/token_text"]))

    def test_a_text_of_any_characters_is_escaped_as_the_program_does(self):
        """Tokens outside the byte alphabet, as some of DeepSeek's are, leave the others their text."""
        byte = {b: c for c, b in texts._bytes_of().items()}
        said = ["\u2764\ufe0f\n", "a" + "\u0301" * 6, "\u3000\u00a0 \\", "\u180b\U000e0100\u200d",
                "a\u0301\u0302\u0303\ufe0f\u0304"]
        tokens = [*("".join(byte[b] for b in t.encode()) for t in said), byte[0xE4], "<\uff5cbegin\u2581of\uff5c>",
                  "\u2581\ufe0f"]
        os.mkdir(self.at("model"))
        shutil.copy(os.path.join(MODEL, "config.json"), self.at("model"))
        shutil.copy(os.path.join(MODEL, "model.safetensors"), self.at("model"))
        with open(os.path.join(MODEL, "tokenizer.json"), encoding="utf-8") as f:
            read = json.load(f)
        read["model"].update(vocab={t: i for i, t in enumerate(tokens)}, merges=[])
        read["added_tokens"] = [{"id": 6, "content": tokens[6], "single_word": False, "lstrip": False, "rstrip": False,
                                 "normalized": False, "special": True}]
        with open(self.at("model/tokenizer.json"), "w", encoding="utf-8") as f:
            json.dump(read, f)
        ids = [*range(len(tokens))]
        with self.recorder(token_ids=ids) as r:
            r.model(self.at("model"))
            r.put("embed", np.ones((len(ids), 1), "<f4"))
        done = program("capture", "ref", self.at("model"), "--ids", ",".join(map(str, ids)), "--points", "embed",
                       "--force", "-o", self.at("ref.h5"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with h5py.File(self.at("cand.h5")) as ours, h5py.File(self.at("ref.h5")) as due:
            found = [t.decode() for t in ours["run/token_text"]]
            self.assertEqual(found, [t.decode() for t in due["run/token_text"]])
        self.assertEqual([found[0], found[5], found[6]], ["\u2764\\u{fe0f}\\n", "\\xe4", tokens[6]])

    def test_the_usual_operation_of_a_point_is_that_of_a_plain_model(self):
        usual = {"v_proj": "linear", "k_rope": "rope", "embed": "embed", "logits": "linear", "moe_out": "combine"}
        self.assertEqual({p: points.known()[p][3] for p in usual}, usual)

    def test_in_steps_is_what_it_is_at_once(self):
        cand, made = self.record("f32", calls=((0, 12), (12, 13), (13, 17)))
        with vernier_parity.open(cand) as r:
            self.assertEqual([(r.step(i)["position"], r.step(i)["tokens"]) for i in range(r.steps)],
                             [(0, 12), (12, 1), (13, 4)])
            np.testing.assert_array_equal(np.concatenate([r[f"step.{i}/logits"] for i in range(3)]), made["logits"][0])
            self.assertEqual(r.token_ids.tolist(), IDS)
        self.assertEqual(program("show", "--check", cand).returncode, 0)

    def test_a_mistake_is_found_where_it_was_made(self):
        cand, _ = self.record("f32", {"layer1.q_rope": "interleaved"})
        done = program("compare", self.reference(), cand, "--explain", "--model", MODEL)
        self.assertEqual(done.returncode, OUTSIDE, done.stderr)
        self.assertIn("explained  layer1.q_rope: R1:", done.stdout)

    def test_the_line_that_records_a_tensor_is_in_the_file_and_in_the_report_on_it(self):
        import inspect

        here, folder = os.path.basename(__file__), os.getcwd()
        os.chdir(HERE)
        self.addCleanup(os.chdir, folder)
        x = np.random.default_rng(1).random((len(IDS), 8), "f4")
        for name, change in (("first.h5", 0), ("cand.h5", 1)):
            with self.recorder(name) as r:
                r.put("embed", x)
                r.put("final_norm", x + change); line = inspect.currentframe().f_lineno  # noqa: E702
                r.put("logits", x, source_line="engine.cu:7")
        with vernier_parity.open(self.at("cand.h5")) as r:
            self.assertEqual([r.attributes(n)["source_line"] for n in r.names()],
                             [f"{here}:{line - 1}", f"{here}:{line}", "engine.cu:7"])
        done = program("compare", self.at("first.h5"), self.at("cand.h5"), "--limits", "fp32.yaml")
        self.assertIn(f"\n  recorded at    candidate {here}:{line}; reference {here}:{line}\n", done.stdout)
        done = program("compare", self.at("first.h5"), self.at("cand.h5"), "--limits", "fp32.yaml", "--format", "json")
        self.assertEqual([d[s]["source_line"] for d in json.loads(done.stdout)["divergences"]
                          for s in ("reference", "candidate")], [f"{here}:{line}"] * 2)
        self.assertIn(f"recorded at      {here}:{line}\n", program("show", self.at("cand.h5"), "final_norm").stdout)
        with self.recorder() as r:
            self.refuses("source_line has 127 printable bytes", r.put, "embed", x, source_line="x" * 128)
            self.refuses("source_line has 127 printable bytes", r.put, "embed", x, source_line="a\n:1")
            r.put("embed", x)

    def test_a_function_of_ones_own_around_put_passes_on_the_line_that_calls_it(self):
        import inspect

        here, x = os.path.basename(__file__), np.zeros((len(IDS), 8), "f4")

        def put(r, name, level):
            r.put(name, x, "token hidden", stacklevel=level)

        with self.recorder() as r, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            put(r, "embed", 1)
            put(r, "final_norm", 2); line = inspect.currentframe().f_lineno  # noqa: E702
            put(r, "layer0.outputt", 2)
            put(r, "logits", 1000)
            self.refuses("stacklevel 0; it counts from 1", r.put, "layer0.output", x, stacklevel=0)
        self.assertEqual([(w.filename, w.lineno) for w in caught], [(__file__, line + 1)])
        with vernier_parity.open(self.at("cand.h5")) as r:
            found = [r.attributes(n)["source_line"] for n in r.names()]
        self.assertEqual([os.path.basename(x) for x in found[1:3]], [f"{here}:{line}", f"{here}:{line + 1}"])
        self.assertEqual(os.path.basename(found[0]), f"{here}:{put.__code__.co_firstlineno + 1}")
        self.assertNotIn(found[3], found[:3])  # the outermost line

    def test_a_line_of_a_long_or_unprintable_path_fits_into_a_file(self):
        from vernier_parity import source_line as lines

        long = lines.fitting("d/" * 200 + "ämodel.py:123")
        self.assertLessEqual(len(long.encode()), 127)
        self.assertTrue(long.startswith("/d/d/") and long.endswith("/ämodel.py:123"))
        self.assertIsNone(lines.fitting("a\x1b.py:1"))
        self.assertEqual(lines._shown("/usr/lib/python3/dist-packages/x/y.py", "/home/me"), "x/y.py")
        self.assertEqual(lines._shown("/home/me/x/y.py", "/home/me"), "x/y.py")
        self.assertEqual(lines._shown("/home/mein/x.py", "/home/me"), "/home/mein/x.py")
        self.assertIsNone(lines._shown("<string>", "/home/me"))

    def test_bfloat16_is_read_as_float32(self):
        a = bf16(np.random.default_rng(1).standard_normal((17, 48)))
        with self.recorder(precision="bf16") as r:
            r.put("embed", a, dtype="bf16")
            r.put("layer0.attn_norm", (a.view(np.uint32) >> 16).astype(np.uint16), dtype="bf16")
        with vernier_parity.open(self.at("cand.h5")) as r:
            self.assertEqual(r["embed"].dtype, np.float32)
            np.testing.assert_array_equal(r["embed"], a)
            np.testing.assert_array_equal(r["layer0.attn_norm"], a)
            self.assertEqual(r.attributes("embed")["dtype"], "bf16")
        self.assertIn("bf16", program("show", self.at("cand.h5"), "embed").stdout)

    def test_a_batch_is_compared_row_by_row(self):
        made = unrelated_run.engine(MODEL, IDS, {}, np.float32)
        padded = np.zeros((2, 20, 48), np.float32)
        padded[0, :17], padded[1, 3:] = made["embed"][0], made["embed"][0]
        ids, positions = np.zeros((2, 20), int), np.full((2, 20), -1)
        ids[0, :17] = ids[1, 3:] = IDS
        positions[0, :17] = positions[1, 3:] = range(17)
        with self.recorder(token_ids=ids, positions=positions) as r:
            r.put("embed", padded)
        ref = self.reference()
        for row in "01":
            done = program("compare", ref, self.at("cand.h5"), "--batch-row", row, "--points", "embed")
            self.assertEqual(done.returncode, WITHIN, done.stdout + done.stderr)

    def test_a_batch_of_one_is_dropped_where_the_ids_are_one_prompt(self):
        made = unrelated_run.engine(MODEL, IDS, {}, np.float32)
        embed, q = made["embed"][0], made["layer0.q_rope"][0]
        with self.recorder() as r:
            r.put("embed", embed[None])
            r.put("layer0.q_rope", q[None], dims="batch token head dim")
        with vernier_parity.open(self.at("cand.h5")) as r:
            self.assertEqual((r["embed"].shape, r["layer0.q_rope"].shape), (embed.shape, q.shape))
        done = program("compare", self.reference(), self.at("cand.h5"), "--points", "{embed,layer0.q_rope}")
        self.assertEqual(done.returncode, WITHIN, done.stdout + done.stderr)


class WhatVernierSays(Files):
    def test_its_recordings_are_read(self):
        ref = self.reference("ref.h5", os.path.join(FIXTURES, "qwen3_5_text-trained"))
        with vernier_parity.open(ref) as r:
            self.assertEqual(r.run["engine"], "ref")
            self.assertTrue(r.complete)
            self.assertEqual(r["layer0.gdn_state"].shape, (6, 8, 6))
            self.assertEqual(r.names()[0], "embed")
            self.assertEqual(r.names()[-1], "logits")
            self.assertIn('"model_type"', r.config)

    def test_points_are_those_of_the_program(self):
        for family in ("gemma2", "gpt2", "llama", "mistral", "qwen2", "qwen3", "qwen3_5_text"):
            said = {}
            for line in program("points", os.path.join(FIXTURES, family + "-trained")).stdout.splitlines()[1:]:
                name, rest = line.split(None, 1)
                axes, rest = rest.split("(", 1)
                basis, op, recorded = rest.split(")", 1)[1].split(None, 2)
                said[name] = (" ".join(axes.split()), basis, op, recorded == "on demand")
            kinds = (["linear_attention"] * 3 + ["full_attention"]) * 2
            ours = points.of_model(family, 4 if family == "qwen3_5_text" else 2, kinds)
            self.assertEqual([p.name for p in ours], list(said))
            self.assertEqual([(p.row.axes, p.row.basis, p.op, p.row.on_demand) for p in ours], list(said.values()))

    def test_globs_select_what_its_globs_select(self):
        names = [p.name for p in points.of_model("qwen2", 2)]
        for pattern in ("layer*.{q,k}_rope", "layer?.*t", "*", "{embed,layer{0,1}.{q,k,v}_{proj,cache}}", "**_act",
                        "{logits,}"):
            with vernier_parity.open(self.reference("some.h5", MODEL, "--points", pattern)) as r:
                chosen = {n for n in names if vernier_parity.match(pattern, n)}
                first = {"embed", "layer0.output"}  # what an input is a second name of comes with it
                self.assertEqual(set(r.names()) - first, chosen - first, pattern)
        names = [p.name for p in points.of_model("qwen2", 12)]
        self.assertEqual(globs.select("layer*.{q,k}_rope", names)[:2], ["layer0.q_rope", "layer0.k_rope"])
        self.assertEqual(globs.select(["layer1{0,1}.output", "embed"], names),
                         ["embed", "layer10.output", "layer11.output"])
        self.assertFalse(vernier_parity.match("layer?.output", "layer10.output"))
        self.refuses("did you mean layer0.q_rope?", globs.select, "layer0.qrope", names)
        self.assertEqual(globs.hint("q_rope", names), "; did you mean layer0.q_rope?")
        self.refuses("did you mean layer*.q_rope?", globs.select, "q_rope", names)
        self.refuses("did you mean layer1.*?", globs.select, "layer1", names)
        self.refuses("'layer*.q_rop' matches no checkpoint", globs.select, ["embed", "layer*.q_rop"], names)
        for bad in ("{a", "a}", "", "x" * 300):
            self.refuses("pattern", vernier_parity.match, bad, "a")

    @unittest.skipIf(numbers.xxhash is None, "no xxhash in this Python")
    def test_weights_have_its_digests(self):
        with self.recorder() as r:
            r.model(MODEL)
            r.put("logits", np.zeros((17, 512), np.float32))
        done = program("weights", self.reference(), self.at("cand.h5"))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("all equal", done.stdout)

    def test_without_xxhash_it_says_once_that_there_are_none(self):
        weights._say_without.cache_clear()
        with mock.patch.object(numbers, "xxhash", None), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for name in ("a.h5", "b.h5"):
                with self.recorder(name) as r:
                    r.model(MODEL)
                    r.put("logits", np.zeros((17, 512), np.float32))
        self.assertEqual([("xxhash" in str(w.message), w.filename) for w in said], [(True, __file__)])

    def test_statistics_are_its_own(self):
        ref = self.reference()
        with vernier_parity.open(ref) as r:
            for name in r.names():
                said, ours = r.attributes(name), numbers.statistics(r[name], "f32")
                for key, value in ours.items():
                    self.assertAlmostEqual(said[key], value, delta=1e-9 * abs(value), msg=f"{name} {key}")
        odd = np.array([np.nan, 1, -np.inf, 3e200, np.inf, -4e200])
        self.assertEqual({k: v for k, v in numbers.statistics(odd, "f64").items() if k in ("min", "max", "nan", "inf")},
                         dict(min=-4e200, max=3e200, nan=1, inf=2))
        self.assertAlmostEqual(numbers.statistics(odd, "f64")["rms"] / 1e200, (25 / 3) ** 0.5)
        self.assertAlmostEqual(float(numbers.f8_values("f8_e4m3")[0x7E]), 448.0)
        self.assertAlmostEqual(float(numbers.f8_values("f8_e5m2")[0x7B]), 57344.0)


class WhatIsWrong(Files):
    def test_is_refused_in_one_line(self):
        a = np.zeros((17, 14, 64), np.float32)
        with self.recorder() as r:
            self.refuses("nothing is recorded yet; put embed first", r.alias, "layer0.input", "embed")
            r.put("layer3.q_rope", a, dims="token head dim")
            self.refuses("unknown axis 'hiden'; did you mean hidden?", r.put, "final_norm", a[:, 0], dims="token hiden")
            self.refuses("unknown axis 'tokens'; did you mean token?", r.put, "layer3.k_rope", a,
                         dims="tokens kv_head dim")
            self.refuses("unknown axis 'x'; layer3.k_rope has 'token kv_head dim'", r.put, "layer3.k_rope", a,
                         dims="token kv_head x")
            self.refuses("layer3.q_rope: recorded twice in step 0", r.put, "layer3.q_rope", a, dims="token head dim")
            self.refuses("one word per axis", r.put, "layer3.k_rope", a, dims="token dim")
            self.refuses("no word twice", r.put, "layer3.k_rope", a, dims="token dim dim")
            self.refuses("16 token, expected 17", r.put, "layer3.k_rope", a[:16], dims="token kv_head dim")
            self.refuses("rank 2, expected 3 (token kv_head dim)", r.put, "layer3.k_rope", a[:, 0])
            self.refuses("so it needs dims", r.put, "blk.3.rope", a)
            self.refuses("a file holds float16", r.put, "layer3.k_rope", a.astype(complex))
            self.refuses("a file holds float16", r.put, "layer3.k_rope", np.array([[["x"]]]))
            self.refuses("not all are bfloat16 values", r.put, "layer3.k_rope", a + np.float32(1.0000001), dtype="bf16")
            self.refuses("no empty axis", r.put, "embed", np.zeros((17, 0), np.float32))
            self.refuses("no slash", r.put, "layer3/k_rope", a, dims="token kv_head dim")
            self.refuses("printable", r.put, "x" * 200, a, dims="token kv_head dim")
            self.refuses("a second name of layer3.q_rop, which step 0 does not have; did you mean layer3.q_rope?",
                         r.alias, "layer3.q", "layer3.q_rop")
            self.refuses("layer2.output, which step 0 does not have", r.alias, "layer3.input", "layer2.output")
            r.put("embed", np.zeros((17, 48), np.float32))
            self.refuses("50 hidden, and embed has 48", r.put, "final_norm", np.zeros((17, 50), np.float32))
            self.refuses("2 token, expected 17", r.put, "logits", np.zeros((2, 9), np.float32))
            for dims in ("token kv_head dim (", "Token Head Dim"):
                self.refuses("words in small letters", r.put, "layer3.k_rope", a, dims=dims)
            self.refuses("layer3: what of it?", r.put, "layer3", a, dims="token head dim")
            self.refuses("of type list", r.fact, extra=[1])
            r.put("blk.3.rope", a, dims="token (head dim) freq")  # a group is one axis
        with vernier_parity.open(self.at("cand.h5")) as r:
            self.assertEqual(sorted(r.names()), ["blk.3.rope", "embed", "layer3.q_rope"])
        self.assertEqual(program("show", self.at("cand.h5")).returncode, 0)

    def test_what_no_command_would_open_is_refused(self):
        a = np.zeros((17, 6), np.float32)
        with self.recorder() as r:
            for what, more in (("op has 31 printable", dict(op="o" * 32)), ("basis has 31", dict(basis="b" * 32)),
                               ("order -1", dict(order=-1)),
                               ("more than 63 bytes", dict(dims="token " + "d" * 58))):
                self.refuses(what, r.put, "mine", a, **{**dict(dims="token x"), **more})
            self.refuses("not an array of numbers", r.put, "mine", [[1.0], [2.0, 3.0]], dims="token x")
            self.refuses("64 bits", r.fact, big=1 << 70)
            self.refuses("60000", r.fact, big="x" * 70000)
            self.refuses("127 printable bytes", r.model, family="qwen2", config="{}", weights={"w" * 128: a})
            r.model(family="qwen2", config="{}")
            self.refuses("given before", r.model, family="qwen2", config="{}")
            self.refuses("-1, which is padding", r.set_positions, [-1, *range(16)])
            names = {"model.layers.10.post_attention_layernorm": "token x",
                     "layer0.something_that_only_this_engine_has": "token x",
                     "n" * 127: "token " + "d" * 57}
            for name, dims in names.items():
                r.put(name, a, dims=dims, op="o" * 31)
            r.put("ids", np.arange(17), dims="token")
        self.assertEqual(program("show", "--check", self.at("cand.h5")).returncode, 0)
        with vernier_parity.open(self.at("cand.h5")) as r:
            self.assertEqual(set(r.names()), {*names, "ids"})
            self.assertEqual(r["ids"].dtype, np.int32)
        self.refuses("padding", self.recorder, positions=[-1, *range(16)])
        for rows in ((3, 15), (-1, 2)):
            self.refuses("rows", self.recorder("x.h5").begin_step, 17, rows=rows)

    def test_names_of_huggingface_are_compared_by_their_map(self):
        made = unrelated_run.engine(MODEL, IDS, {}, np.float32)
        with self.recorder() as r:
            for n in range(2):
                r.put(f"model.layers.{n}.post_attention_layernorm", made[f"layer{n}.mlp_norm"][0], dims="token hidden")
        done = program("compare", self.reference(), self.at("cand.h5"), "--names", "hf", "--allow", "missing")
        self.assertEqual(done.returncode, WITHIN, done.stdout + done.stderr)
        self.assertIn("2 checkpoints compared", done.stdout)

    def test_what_is_no_regular_file_is_left_alone(self):
        os.mkfifo(self.at("pipe"))
        self.refuses("is not a regular file", self.recorder, "pipe")
        self.refuses("is empty", vernier_parity.Recorder, "", engine="x", precision="f32")
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["pipe"])

    def test_a_name_that_failed_may_be_put_again(self):
        with self.recorder() as r:
            self.refuses("expected 17", r.put, "embed", np.zeros((3, 48), np.float32))
            r.put("embed", np.ones((17, 48), np.float32))
        with vernier_parity.open(self.at("cand.h5")) as r:
            self.assertEqual(r["embed"].sum(), 17 * 48)

    def test_an_exception_leaves_what_says_that_it_is_incomplete(self):
        before = b"\x89HDF\r\n\x1a\n what was there before"  # force replaces what begins as a recording does
        with open(self.at("cand.h5"), "wb") as f:
            f.write(before)
        with self.assertRaises(KeyboardInterrupt):
            with self.recorder() as r:
                r.put("embed", np.ones((17, 48), np.float32))
                raise KeyboardInterrupt
        with open(self.at("cand.h5"), "rb") as f:
            self.assertEqual(f.read(), before)
        with vernier_parity.open(self.at("cand.h5.partial")) as r:
            self.assertFalse(r.complete)
            self.assertEqual(r.names(), ["embed"])
        self.assertIn("INCOMPLETE", program("show", self.at("cand.h5.partial")).stdout)
        with self.recorder() as r:
            r.put("embed", np.ones((17, 48), np.float32))
        self.assertFalse(os.path.exists(self.at("cand.h5.partial")))
        self.assertTrue(vernier_parity.open(self.at("cand.h5")).complete)

    def test_runs_that_do_not_hold_together_are_refused(self):
        def of(*steps, **more):
            with self.recorder("x.h5", **more) as r:
                for s in steps:
                    r.begin_step(**s)
        self.refuses("nothing was recorded", of)
        self.refuses("the steps have 5 tokens, token_ids 17", of, dict(tokens=5))
        self.refuses("18 tokens, but token_ids has only 17 left", of, dict(tokens=18))
        self.refuses("no token_ids, neither", of, dict(tokens=5), token_ids=None)
        self.refuses("given to Recorder already", of, dict(token_ids=[1]))
        self.refuses("an id below 0", of, token_ids=[1, -1])
        self.refuses("different lengths", of, token_ids=[[1, 2], [1]])
        self.refuses("the same shape", of, token_ids=[1, 2], positions=[0])
        self.refuses("does not exist", vernier_parity.Recorder, self.at("no/where.h5"), engine="x", precision="f32")
        self.refuses("is a directory", vernier_parity.Recorder, self.folder.name, engine="x", precision="f32")
        self.refuses("config.json", self.recorder("y.h5").model, self.folder.name)
        for i, text in enumerate(("{", "[]")):
            with open(self.at("config.json"), "w", encoding="utf-8") as f:
                f.write(text)
            self.refuses("config.json: not a JSON object", self.recorder(f"config{i}.h5").model, self.folder.name)
        with open(self.at("config.json"), "w", encoding="utf-8") as f:
            f.write("{}")
        for i, header in enumerate((b"", b"\xff" * 8, (2).to_bytes(8, "little") + b"{x",
                                    (2).to_bytes(8, "little") + b"[]")):
            with open(self.at("model.safetensors"), "wb") as f:
                f.write(header)
            self.refuses("model.safetensors: not a safetensors file", self.recorder(f"weights{i}.h5").model,
                         self.folder.name)
        self.assertFalse(os.path.exists(self.at("x.h5")))

    def test_numbers_that_their_digest_denies_are_refused(self):
        import h5py

        with self.recorder() as r:
            r.put("embed", np.ones((17, 48), np.float32))
            r.put("logits", np.ones((17, 8), np.float16))
        with h5py.File(self.at("cand.h5"), "r+") as f:
            self.assertIn("digest", f["step.0/logits"].attrs)
            f["step.0/logits"][3, 4] = 2
            f["run/positions"][1] = 5
        with vernier_parity.open(self.at("cand.h5")) as r:
            self.assertEqual(r["embed"].sum(), 17 * 48)
            self.refuses("logits: its numbers do not match their digest", r.__getitem__, "logits")
            self.refuses("run/positions: its numbers do not match their digest", lambda: r.positions)
            self.assertEqual(len(r.token_ids), 17)

    def test_files_that_are_none_are_refused(self):
        with open(self.at("text.h5"), "w") as f:
            f.write("text")
        self.refuses("not an HDF5 file", vernier_parity.open, self.at("text.h5"))
        self.refuses("no such file", vernier_parity.open, self.at("nothing.h5"))
        import h5py

        with h5py.File(self.at("other.h5"), "w") as f:
            f["a"] = 1
        self.refuses("not a vernier checkpoint file", vernier_parity.open, self.at("other.h5"))
        with self.recorder() as r:
            r.put("embed", np.ones((17, 48), np.float32))
        with vernier_parity.open(self.at("cand.h5")) as r:
            self.assertRaises(KeyError, r.__getitem__, "logits")
            self.assertRaises(KeyError, r.__getitem__, "layer0")
            self.refuses("there is no step 1; the file has step 0 alone", r.names, 1)
            self.refuses("expected step.N/NAME", r.__getitem__, "step.x/embed")


if __name__ == "__main__":
    os.environ["VERNIER_PROGRAM"] = os.path.abspath(sys.argv.pop(1))
    unittest.main()
