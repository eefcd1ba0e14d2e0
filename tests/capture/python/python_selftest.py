#!/usr/bin/env python3
"""python_selftest.py VERNIER: `python -m vernier_parity selftest` can fail: it reports a comparison that finds nothing,
or the wrong thing, and takes no verdict from a program that was killed, lacks memory or contradicts itself.

In place of the program stands a script that passes everything on to it but the comparisons of changed copies.
tests/cli/selftest*.sh test what the real program finds. 77: skipped.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "..", "..", "capture", "python")
sys.path[:0] = [PACKAGE, os.path.join(HERE, "..", "..", "attack")]
try:
    import numpy as np

    import vernier_parity
    from vernier_parity.selftest.edit import stored_as
    from vernier_parity.selftest.mutations import GROUPS
except ImportError as e:
    print(f"SKIPPED: no {e.name} in this Python")
    sys.exit(77)
from hostile_text import BYTES, TEXT, forbidden

MODEL = os.path.join(HERE, "..", "..", "..", "fixtures", "qwen2-trained")
# of each group one, of each kind of expectation one
SOME = "{numbers/nan,places/tokens-late,names/missing,shapes/{row-less,seven-axes},files/{truncated,incomplete}," \
       "contract/other-id}"


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.tmp = os.path.join(cls.folder.name, "tmp")
        os.mkdir(cls.tmp)
        for precision in "f32", "f16":
            subprocess.run([VERNIER, "capture", "ref", MODEL, "--ids", ",".join(map(str, range(5, 22))), "--precision",
                            precision, "-o", cls.path(f"{precision}.h5")], check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def start(self, *args):
        where = {**os.environ, "PYTHONPATH": PACKAGE, "TMPDIR": self.tmp}
        return subprocess.Popen([sys.executable, "-m", "vernier_parity", "selftest", *args], env=where,
                                cwd=self.folder.name, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run_it(self, *args, program=None):
        p = self.start(*args, "--vernier", program or VERNIER)
        out, err = p.communicate(timeout=300)
        self.assertEqual(os.listdir(self.tmp), [])
        return p.returncode, out.decode(), err.decode()

    def program(self, of_a_copy):
        """A program that does `of_a_copy` (sh) for a comparison of a changed copy, but else what vernier does. In it,
        `unchanged` compares the pair as it is."""
        path = self.path("program")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"""#!/bin/sh
vernier={os.path.abspath(VERNIER)}
unchanged() {{ "$vernier" compare f32.h5 f16.h5 --format json; }}
case "$1 $2 $3" in compare*vernier-selftest-*) {of_a_copy};; esac
exec "$vernier" "$@"
""")
        os.chmod(path, 0o755)
        return path

    def some(self, of_a_copy, only=SOME):
        """Tries some mutations with such a program: (exit status, outcome by mutation, error)."""
        status, out, err = self.run_it("f32.h5", "f16.h5", "--only", only, "--format", "json",
                                       program=self.program(of_a_copy))
        listed = json.loads(out)["pairs"][0]["mutations"] if out else []
        return status, {x["name"]: x["outcome"] for x in listed if x["outcome"] != "elsewhere"}, err


class ACommandThatCanFail(Base):
    def test_the_word_is_the_command_beside_a_file_of_that_name(self):
        with open(self.path("selftest"), "w", encoding="utf-8"):  # what a shell makes for `... selftest >selftest`
            pass
        self.assertEqual(self.run_it("f32.h5", "f16.h5", "--only", "numbers/nan")[0], 0)
        os.unlink(self.path("selftest"))

    def test_what_the_program_finds_is_caught(self):
        status, outcomes, _ = self.some("true")
        self.assertEqual((status, set(outcomes.values()), len(outcomes)), (0, {"caught"}, 8))

    def test_a_program_that_finds_nothing_misses_everything(self):
        status, outcomes, _ = self.some("unchanged; exit 0")
        self.assertEqual((status, set(outcomes.values()), len(outcomes)), (1, {"missed"}, 8))

    def test_a_program_that_finds_another_difference_misses_everything_else(self):
        self.run_it("f32.h5", "f16.h5", "--only", "numbers/nan", program=self.program(
            'cp "$3" other.h5; [ -e other.json ] || "$vernier" compare f32.h5 other.h5 --format json >other.json'))
        status, outcomes, _ = self.some("cat other.json; exit 1")
        self.assertEqual(status, 1)
        self.assertEqual({k for k, v in outcomes.items() if v == "caught"}, {"nan"})

    def test_another_refusal_is_missed(self):
        said = '{"verdict": "trouble", "refusals": ["weights: 1 of 26 differ (--allow weights)"]}'
        status, outcomes, _ = self.some(f"echo '{said}'; exit 2")
        self.assertEqual((status, set(outcomes.values()), len(outcomes)), (1, {"missed"}, 8))

    def test_each_mutation_has_a_name_and_one_change(self):
        listed = [(g, m) for g, of in GROUPS.items() for m in of]
        self.assertEqual((len(listed), len({(g, m.name) for g, m in listed})), (227, 227))
        for g, m in listed:
            self.assertEqual(sum(x is not None for x in (m.numbers, m.bits, m.edit, m.file)), 1, f"{g}/{m.name}")


class NoVerdictFromTrouble(Base):
    def refuses(self, of_a_copy, words, only):
        status, outcomes, err = self.some(of_a_copy, only)
        self.assertEqual((status, outcomes, len(err.splitlines())), (2, {}, 1), err)
        self.assertIn(words, err)

    def test_a_killed_comparison(self):
        self.refuses("kill -KILL $$", "vernier compare ended with -9", "numbers/nan")

    def test_lack_of_memory(self):
        for only in "numbers/nan", "files/truncated", "shapes/tokens-less":
            self.refuses("echo 'vernier compare: no memory for damaged HDF5 structure tokens' >&2; exit 2",
                         "no memory", only)

    def test_an_edited_copy_that_does_not_open(self):
        self.refuses("echo 'vernier compare: candidate.h5: Too many open files' >&2; exit 2", "Too many open files",
                     "numbers/nan")

    def test_a_status_that_contradicts_the_report(self):
        self.refuses("unchanged; exit 1", "ended with 1", "numbers/nan")
        self.refuses("exit 0", "ended with 0", "numbers/nan")

    def test_a_report_that_is_cut(self):
        self.refuses("unchanged | head -c 1000; exit 0", "not JSON", "numbers/nan")

    def test_a_report_of_another_version(self):
        for said in '{"verdict": "within"}', '{"verdict": "outside"}', "{}", "[]", "1":
            self.refuses(f"echo '{said}'; exit {int('outside' in said)}", "its report is not", "numbers/nan")
            if "outside" not in said:  # of the pair as it is
                self.refuses_at_once(f'case $1 in compare) echo \'{said}\'; exit 0;; esac')
        for said in "{}", "[]", '{"run": {}, "steps": [{}]}':
            self.refuses_at_once(f'case $1 in show) echo \'{said}\'; exit 0;; esac')

    def refuses_at_once(self, first):
        path = self.program("true")
        with open(path, encoding="utf-8") as f:
            begin, rest = f.read().split("\n", 1)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"{begin}\n{first}\n{rest}")
        status, out, err = self.run_it("f32.h5", "f16.h5", "--only", "numbers/nan", program=path)
        self.assertEqual((status, out, len(err.splitlines())), (2, "", 1), err)
        self.assertIn("its report is not", err)

    def test_a_path_that_speaks_of_memory_is_no_lack_of_it(self):
        before, inside = self.tmp, os.path.join(self.tmp, "in-memory")
        os.mkdir(inside)
        try:
            type(self).tmp = inside
            status, outcomes, err = self.some("true", "files/{absent,truncated}")
        finally:
            type(self).tmp = before
            os.rmdir(inside)
        self.assertEqual((status, outcomes), (0, {"absent": "caught", "truncated": "caught"}), err)

    def test_a_pipe_is_refused(self):
        os.mkfifo(self.path("pipe.h5"))
        status, out, err = self.run_it("pipe.h5")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("pipe.h5: ", err)

    def test_a_signal_leaves_nothing(self):
        for number, wait in (signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGTERM, 0.5), (signal.SIGHUP, 0.5):
            p = self.start("--vernier", VERNIER)
            while p.poll() is None and not os.listdir(self.tmp):
                time.sleep(0.001)
            time.sleep(wait)
            p.send_signal(number)
            p.send_signal(number)
            p.communicate(timeout=60)
            self.assertEqual((p.returncode, os.listdir(self.tmp)), (-number, []), f"{number.name} after {wait} s")


class WhatItWrites(Base):
    def test_nothing_is_printed_that_a_terminal_would_obey(self):
        with vernier_parity.open(self.path("f32.h5")) as rec, vernier_parity.Recorder(
                self.path("evil.h5"), engine="mine", precision="f32", token_ids=rec.token_ids,
                run={"device": TEXT}) as r:
            for name in "layer0.attn_out", "layer0.attn_norm":
                r.put(name, rec[name], dims="token hidden")
        name = os.path.join(os.fsencode(self.folder.name), b"e" + BYTES.replace(b"/", b"") + b".h5")
        os.rename(self.path("evil.h5"), name)
        for how in "text", "json":
            p = self.start(os.fsdecode(name), "--only", "numbers/*", "--format", how, "--vernier", VERNIER)
            out, err = p.communicate(timeout=300)
            self.assertEqual((p.returncode, forbidden(out), err), (0, None, b""))
        p = self.start(os.fsdecode(name), "x", TEXT, "--vernier", VERNIER)
        out, err = p.communicate(timeout=300)
        self.assertEqual((p.returncode, forbidden(err)), (2, None))

    def test_numbers_are_rounded_once(self):
        x = np.array([1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-8, -(1 + 2.0**-8 + 2.0**-40), 3.4e38, 1e300,
                      -np.inf, 0.0, -0.0])
        self.assertEqual([hex(b) for b in stored_as(x, "bf16")],
                         ["0x3f80", "0x3f81", "0x3f82", "0xbf81", "0x7f80", "0x7f80", "0xff80", "0x0", "0x8000"])
        self.assertEqual(int(stored_as(np.array([np.nan]), "bf16")[0]), 0x7FC0)
        for raw in range(0, 1 << 16, 7):  # what is a bfloat16 number stays it
            if raw & 0x7F80 != 0x7F80:
                x = np.array([raw << 16], "<u4").view("<f4").astype("f8")
                self.assertEqual(int(stored_as(x, "bf16")[0]), raw)

    def test_the_original_is_never_changed(self):
        files = [pathlib.Path(self.path(f"{p}.h5")) for p in ("f32", "f16")]
        before = [f.read_bytes() for f in files]
        self.run_it("f32.h5", "f16.h5", "--only", "{shapes,files}/*")
        self.assertEqual([f.read_bytes() for f in files], before)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__.splitlines()[0])
    VERNIER = os.path.abspath(sys.argv.pop(1))
    unittest.main()
