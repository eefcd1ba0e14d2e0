#!/usr/bin/env python3
"""python_recorder_against.py VERNIER: a run that vernier_parity.Recorder judges by a reference while it records it:
what is left out, what is written, and where it stops. 77: skipped.
"""
import ctypes
import json
import os
import re
import sys
import unittest

from python_recorder import IDS, MODEL, OUTSIDE, WITHIN, Engine, np, program, vernier_parity


class JudgedMeanwhile(Engine):
    def test_what_agrees_with_a_reference_is_left_out(self):
        first, made = self.record("f32")
        os.rename(first, self.at("first.h5"))
        same, _ = self.record("f32", against=self.at("first.h5"))
        with vernier_parity.open(same) as r:
            self.assertEqual(list(r.names()), [])
        done = program("compare", self.at("first.h5"), same)
        self.assertEqual(done.returncode, WITHIN, done.stdout + done.stderr)
        self.assertIn("0 checkpoints compared, 33 judged while recorded and left out", done.stdout)
        near, _ = self.record("f32", against=self.reference())  # the program's own: equal except for rounding
        with vernier_parity.open(near) as r:
            # more of logits is judged than nmse; the others came before
            self.assertEqual(list(r.names()), ["layer1.output", "final_norm", "logits"])
        done = program("compare", self.reference(), near)
        self.assertEqual(done.returncode, WITHIN, done.stdout + done.stderr)
        self.assertIn("not every metric was measured", done.stdout)
        self.assertEqual(program("show", "--check", near).returncode, 0)

    def test_what_differs_from_a_reference_is_written_with_its_layer_so_far(self):
        first, _ = self.record("f32")
        os.rename(first, self.at("first.h5"))
        cand, made = self.record("f32", {"layer1.q_rope": "interleaved"}, calls=((0, 17),), against=self.at("first.h5"))
        self.assertEqual(self.differed, "layer1.q_rope")
        with vernier_parity.open(cand) as r:
            names = set(r.names())
            for name in names & set(made):
                np.testing.assert_array_equal(r[name], made[name][0])
        self.assertTrue({"layer0.output", "layer1.input", "layer1.q_proj", "layer1.q_rope", "logits"} <= names, names)
        self.assertFalse(names & {"embed", "layer0.input", "layer0.q_proj", "layer0.down_proj"}, names)
        done = program("compare", self.at("first.h5"), cand, "--explain", "--model", MODEL)
        self.assertEqual(done.returncode, OUTSIDE, done.stderr)
        self.assertIn("explained  layer1.q_rope: R1:", done.stdout)
        # other calls: nothing of the same shape
        steps, _ = self.record("f32", calls=((0, 12), (12, 17)), against=self.at("first.h5"))
        with vernier_parity.open(steps) as r:
            self.assertIn("step.1/logits", [f"step.{i}/{n}" for i in range(r.steps) for n in r.names(i)])

    def test_the_c_library_leaves_out_the_same_tensors(self):
        path = os.path.join(os.path.dirname(os.environ["VERNIER_PROGRAM"]), "..", "capture", "libvernier-capture.so")
        if not os.path.exists(path):
            self.skipTest("no libvernier-capture.so beside the program")
        lib, rng = ctypes.CDLL(path), np.random.default_rng(3)
        lib.vernier_capture_open.restype, lib.vernier_capture_error.restype = ctypes.c_void_p, ctypes.c_char_p

        def noisy(dtype, nmse):  # a tensor, and one at this nmse of it
            x = rng.normal(size=(len(IDS), 64))
            return [y.astype(dtype) for y in (x, x + rng.normal(size=x.shape) * np.sqrt(nmse))]
        x = noisy("f4", 0)[0]
        agree = (x, x), noisy("f4", .7e-9), noisy("f8", .7e-9), noisy("f2", .7e-5), (x, x.astype("f8"))
        differ = (noisy("f4", 1.5e-9), noisy("f8", 1.5e-9), noisy("f2", 1.5e-5), (x, np.float32(1.1) * x),
                  (x, np.where(x > 2, np.float32(np.nan), x)), (x, np.full_like(x, 1)))
        pairs = {"final_norm": (x, x[-1:]), "logits": noisy("f4", 1e-12)}
        for i, pair in enumerate(agree + differ):  # between equal tensors: what differs is written with the one before
            pairs.update({f"layer{2 * i}.input": (x, x), f"layer{2 * i + 1}.input": pair})
        with self.recorder("first.h5") as r:
            for name, (a, _) in pairs.items():
                r.put(name, a, dims="token vocab" if name == "logits" else "token hidden")
        for above in None, 1e-4:
            with self.recorder("cand.h5", against=self.at("first.h5"), keep_above=above) as r:
                for name, (_, b) in pairs.items():
                    r.put(name, b, dims="token vocab" if name == "logits" else "token hidden")
            c = ctypes.c_void_p(lib.vernier_capture_open(self.at("c.h5").encode(), 1, b"numpy", b"f32"))
            done = [lib.vernier_capture_against(c, self.at("first.h5").encode(), ctypes.c_double(above or 0)),
                    lib.vernier_capture_step(c, (ctypes.c_int32 * len(IDS))(*IDS), ctypes.c_size_t(len(IDS)))]
            for name, (_, b) in pairs.items():
                b = np.ascontiguousarray(b)
                done.append(lib.vernier_capture_put(
                    c, name.encode(), None, {2: b"f16", 4: b"f32", 8: b"f64"}[b.itemsize],
                    b.ctypes.data_as(ctypes.c_void_p), 2, (ctypes.c_int64 * 2)(*b.shape)))
            self.assertEqual(done + [lib.vernier_capture_commit(c)], [0] * (len(done) + 1),
                             lib.vernier_capture_error(c))
            lib.vernier_capture_free(c)
            found = [json.loads(program("show", self.at(f), "--format", "json").stdout) for f in ("cand.h5", "c.h5")]
            own, theirs = (sorted(t["name"] for t in f["tensors"]) for f in found)
            self.assertEqual(own, theirs)
            if above is None:
                self.assertEqual({n for n in own if re.match("layer.*[13579]\\.", n)},
                                 {f"layer{2 * i + 1}.input" for i in range(len(agree), len(agree + differ))})
            for one, other in zip(*(f["left_out"] for f in found)):
                for key in "nmse", "max_abs":
                    self.assertAlmostEqual(one["measured"].pop(key, 0), other["measured"].pop(key, 0))
                self.assertEqual(one, other)
            for key in "against_limits", "judged":
                self.assertEqual(found[0]["run"][key], found[1]["run"][key])

    def test_a_run_stops_at_the_first_tensor_that_differs(self):
        self.record("f32", calls=((0, 12), (12, 17)))
        first, name = self.at("first.h5"), "layer1.q_rope"
        os.rename(self.at("cand.h5"), first)
        with self.assertRaises(vernier_parity.Diverged) as e:
            self.record("f32", {name: "interleaved"}, calls=((0, 12), (12, 17)), against=first, stop_at_first=True)
        self.assertEqual((e.exception.name, e.exception.path, e.exception.against), (name, self.at("cand.h5"), first))
        with vernier_parity.open(self.at("cand.h5")) as r:
            self.assertEqual((r.complete, r.run["stopped"], len(r.token_ids), r.names()[-1]), (True, name, 12, name))
        done = program("compare", first, self.at("cand.h5"))
        self.assertEqual(done.returncode, OUTSIDE, done.stderr)
        self.assertIn(f"the candidate's run was stopped at {name}: ", done.stdout)
        self.assertIn(f"first      {name}\n", done.stdout)

    def test_a_later_step_that_differs_is_named_with_its_step_and_nothing_can_be_put_after_it(self):
        a, b = np.random.default_rng(1).random((2, len(IDS), 8), "f4")
        for name, last in (("first.h5", a), ("cand.h5", b)):
            more = {} if name == "first.h5" else dict(against=self.at("first.h5"), stop_at_first=True)
            with self.recorder(name, **more) as r:
                r.begin_step(12)
                r.put("final_norm", a[:12])
                r.begin_step(3)
                if name == "first.h5":
                    r.put("final_norm", last[12:15])
                    r.begin_step(2)
                    r.put("final_norm", last[15:])
                    continue
                for again in (lambda: r.put("final_norm", last[12:15]), lambda: r.put("logits", last[12:15]),
                              lambda: r.begin_step(2),
                              lambda: r.alias("layer0.input", "final_norm")):
                    with self.assertRaises(vernier_parity.Diverged) as e:
                        again()
                    self.assertEqual(e.exception.name, "step.1/final_norm")
        with vernier_parity.open(self.at("cand.h5")) as r:
            self.assertEqual((r.complete, r.steps, len(r.token_ids), r.names(1)), (True, 2, 15, ["final_norm"]))
        self.refuses("stop_at_first needs against", self.recorder, stop_at_first=True)

    def test_a_run_that_stops_does_not_complete_another_recording_of_it(self):
        x = np.random.default_rng(1).random((len(IDS), 8), "f4")
        with self.recorder("first.h5") as r:
            r.put("embed", x)
        with self.assertRaises(vernier_parity.Diverged):
            with self.recorder("whole.h5") as whole, self.recorder("cand.h5", against=self.at("first.h5"),
                                                                   stop_at_first=True) as r:
                whole.put("embed", x + 1)
                r.put("embed", x + 1)
        self.assertEqual([os.path.exists(self.at(n)) for n in ("whole.h5", "whole.h5.partial", "cand.h5")],
                         [False, True, True])

    def test_a_nan_anywhere_is_written_though_the_reference_has_it_too(self):
        # more than are looked at at a time
        x = np.random.default_rng(0).standard_normal((len(IDS), 70000)).astype("f4")
        x[-1, -1] = np.nan
        for name, against in (("first.h5", None), ("second.h5", self.at("first.h5"))):
            with self.recorder(name, against=against) as r:
                r.begin_step(len(IDS))
                r.put("layer0.output", x)
        with vernier_parity.open(self.at("second.h5")) as r:
            self.assertEqual(list(r.names()), ["layer0.output"])

    def damaged(self):
        import h5py

        with h5py.File(self.at("other.h5"), "w") as f:
            f["x"] = 1
        return self.at("other.h5")

    def test_a_reference_that_is_none_is_refused(self):
        self.refuses("against: " + self.at("none.h5") + ": no such file", self.recorder, against=self.at("none.h5"))
        self.refuses("not a complete recording", self.recorder, against=self.damaged())
        self.refuses("keep_above", self.recorder, keep_above=1e-3)
        self.refuses("from 0 to 1", self.recorder, against=self.reference(), keep_above=2)


if __name__ == "__main__":
    os.environ["VERNIER_PROGRAM"] = os.path.abspath(sys.argv.pop(1))
    unittest.main()
