#!/usr/bin/env python3
"""python_recorder_files.py VERNIER: the file that vernier_parity.Recorder writes: what has its name before, how it is
left by a full disk, a fork or an end without close, and when it gets its name. 77: skipped.
"""
import errno
import multiprocessing
import os
import subprocess
import sys
import unittest
from unittest import mock

from python_recorder import IDS, Files, np, program, vernier_parity, weights


class TheFile(Files):
    def test_a_full_disk_at_the_end_is_said_in_one_line(self):
        from vernier_parity import h5

        r = self.recorder()
        r.put("logits", np.ones((len(IDS), 8), "f4"))
        with mock.patch.object(h5, "put_attribute", side_effect=OSError("no space left on device")):
            self.refuses("cannot write: no space left on device", r.close)
        self.assertEqual(os.listdir(self.folder.name), ["cand.h5.partial"])

    def test_a_full_disk_ends_the_recording_and_not_the_program(self):
        """Runs in a process of its own, because HDF5 may end it later if it cannot write. A limit
        on file sizes imitates a full disk."""
        script = """if True:
            import resource, sys, numpy, vernier_parity
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
            try:
                with vernier_parity.Recorder(sys.argv[1], engine="numpy", precision="f32", token_ids=[1, 2, 3],
                                             force=True) as r:
                    for i in range(4):
                        r.put(f"layer{i}.output", numpy.ones((3, 9000), "f4"))
            except vernier_parity.RecordingError as e:
                sys.exit(f"refused: {e}")
            """
        where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

        def record(limit):
            return subprocess.run([sys.executable, "-c", script, self.at("cand.h5"), str(limit)], capture_output=True,
                                  text=True, env=where)

        whole = record(1 << 30)
        self.assertEqual((whole.returncode, whole.stderr), (0, ""))
        size = os.path.getsize(self.at("cand.h5"))
        os.unlink(self.at("cand.h5"))
        for limit in (0, 1, 2000, 5000, size // 2, size - 3000, size - 1):
            done = record(limit)
            self.assertEqual((done.returncode, done.stderr[:9], done.stderr.count("\n")), (1, "refused: ", 1),
                             (limit, done.stderr))
            self.assertIn("cannot write", done.stderr)
            self.assertFalse(os.path.exists(self.at("cand.h5")))
        self.assertEqual(record(size).returncode, 0)

    def test_a_link_under_the_name_of_the_unfinished_file_is_not_followed(self):
        with open(self.at("precious"), "w", encoding="utf-8") as f:
            f.write("precious")
        os.symlink("precious", self.at("cand.h5.partial"))
        self.refuses("cannot write", self.recorder)
        with open(self.at("precious"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "precious")

    def test_the_unfinished_file_opens_as_soon_as_it_has_a_name(self):
        r = self.recorder(token_ids=None)
        for n in range(3):
            self.assertIn("INCOMPLETE", program("show", self.at("cand.h5.partial")).stdout)
            r.begin_step(token_ids=IDS if n == 0 else [3])
            r.put("logits", np.full((len(IDS) if n == 0 else 1, 8), n, "f4"))
            r._publish(at_once=True)
            with vernier_parity.open(self.at("cand.h5.partial")) as rec:
                self.assertEqual((rec.steps, rec.complete), (n + 1, False))
                self.assertEqual(rec.token_ids.tolist(), IDS + n * [3])
                self.assertEqual(rec.positions.tolist(), list(range(len(IDS) + n)))
                self.assertEqual(float(rec[f"step.{n}/logits"][0, 0]), n)
        r.close()
        self.assertEqual(os.listdir(self.folder.name), ["cand.h5"])
        self.assertEqual(program("show", "--check", self.at("cand.h5")).returncode, 0)

    def test_names_without_layers_and_steps_may_be_many(self):
        with self.recorder(token_ids=None) as r:
            r.begin_step(token_ids=[1])
            for i in range(1000):
                r.put(f"blk.{i}.x", np.full((1, 2), i, "f4"), dims="token x")
            r.put("more.4", np.ones((1, 2), "f4"), dims="token x")
            r.alias("again", "blk.999.x")
            for i in range(300):
                r.begin_step(token_ids=[i])
                r.put("logits", np.ones((1, 4), "f4"))
        with vernier_parity.open(self.at("cand.h5")) as rec:
            self.assertEqual((rec.steps, len(rec.names())), (301, 1002))
            self.assertEqual([float(rec[n][0, 0]) for n in ("blk.0.x", "blk.999.x", "again", "more.4")],
                             [0, 999, 999, 1])
        shown = program("show", "--check", self.at("cand.h5"))
        self.assertEqual(shown.returncode, 0, shown.stdout + shown.stderr)

    def test_what_has_the_name_of_the_unfinished_file_stays_unless_it_was_ours(self):
        import h5py

        other = self.at("cand.h5.partial")
        with h5py.File(self.at("other.h5"), "w") as f:
            f["weights"] = np.ones(3)
        for made in (lambda: open(other, "wb").write(b"GGUF of 40 GB"), lambda: os.rename(self.at("other.h5"), other),
                     lambda: os.mkfifo(other)):
            made()
            before = os.stat(other)
            self.refuses("regular" if not os.path.isfile(other) else "not a recording that was interrupted",
                         self.recorder)
            self.assertEqual((os.stat(other).st_ino, os.stat(other).st_size), (before.st_ino, before.st_size))
            os.unlink(other)
        for begun in b"", b"vernier begins a recording here\n" + bytes(32) + b"OHDR":  # by the program, then killed
            with open(other, "wb") as f:
                f.write(begun)
            with self.recorder(force=True) as r:
                r.put("logits", np.ones((len(IDS), 8), "f4"))
        os.rename(self.at("cand.h5"), other)
        self.refuses("is the recording to judge this one by", self.recorder, against=other)
        self.assertTrue(os.path.isfile(other))
        for force in False, True:  # it is complete
            self.refuses("marked as complete", self.recorder, force=force)
        with vernier_parity.open(other) as rec:
            self.assertTrue(rec.complete and "logits" in rec)
        with self.recorder("ref.h5") as r:
            r.put("logits", np.ones((len(IDS), 8), "f4"))
        self.refuses("is the recording to judge this one by", self.recorder, "ref.h5", against=self.at("ref.h5"))
        with h5py.File(other, "r+") as f:
            f.attrs["complete"] = 0
        os.link(other, self.at("second.h5"))
        self.refuses("has another name", self.recorder)
        os.unlink(self.at("second.h5"))
        with self.recorder() as r:  # what was interrupted is replaced
            r.put("logits", np.zeros((len(IDS), 8), "f4"))
        self.assertFalse(os.path.exists(other))

    def test_of_two_recorders_that_begin_at_once_one_is_refused(self):
        from vernier_parity import h5

        begun = []

        def between(path, is_leftover):  # another one begins after this one has looked
            if not begun:
                begun.append(None)
                begun[0] = self.recorder()

        with mock.patch.object(h5, "make_room", between):
            self.refuses("another process has just begun to write it", self.recorder)
        begun[0].put("logits", np.ones((len(IDS), 8), "f4"))
        begun[0].close()
        with vernier_parity.open(self.at("cand.h5")) as rec:
            self.assertTrue(rec.complete and "logits" in rec)

    def test_a_pipe_is_not_waited_for(self):
        os.mkfifo(self.at("pipe.h5"))
        writer = os.open(self.at("pipe.h5"), os.O_RDWR)  # or else the old code would wait for ever
        self.refuses("is not a regular file", vernier_parity.open, self.at("pipe.h5"))
        self.refuses("is not a regular file", self.recorder, against=self.at("pipe.h5"))
        os.close(writer)

    def test_a_file_that_appears_in_the_meantime_stays(self):
        for force, words in ((False, "another program has created"), (True, "is not a recording")):
            r = self.recorder(force=force)
            r.put("logits", np.ones((len(IDS), 8), "f4"))
            with open(self.at("cand.h5"), "w", encoding="utf-8") as f:
                f.write("precious")
            self.refuses(words, r.close)
            self.assertEqual(self.bytes_of("cand.h5"), b"precious")
            with vernier_parity.open(self.at("cand.h5.partial")) as rec:
                self.assertIn("logits", rec)
            for name in "cand.h5", "cand.h5.partial":  # both are whole, and stay
                os.unlink(self.at(name))

    def test_file_systems_without_links_and_without_flushing(self):
        refused = PermissionError(errno.EPERM, "Operation not permitted")
        unable = OSError(errno.EINVAL, "Invalid argument")
        with mock.patch.object(os, "link", side_effect=refused), mock.patch.object(os, "fsync", side_effect=unable):
            with self.recorder() as r:
                r.put("logits", np.ones((len(IDS), 8), "f4"))
                r.put("embed", np.full((len(IDS), 8), 2, "f4"))
                self.assertEqual(os.listdir(self.folder.name), ["cand.h5.partial"])
        with vernier_parity.open(self.at("cand.h5")) as rec:
            self.assertTrue(rec.complete and (rec["embed"] == 2).all() and (rec["logits"] == 1).all())
        self.assertEqual(os.listdir(self.folder.name), ["cand.h5"])
        with mock.patch.object(os, "fsync", side_effect=OSError(errno.EIO, "Input/output error")):
            r = self.recorder("second.h5")
            r.put("logits", np.ones((len(IDS), 8), "f4"))
            self.refuses("Input/output error", r.close)

    def test_the_lock_is_held_until_the_file_has_its_name(self):
        from vernier_parity import disk

        before, said = disk._rename, []

        def slowly(*args):
            with self.assertRaises(vernier_parity.RecordingError) as e:
                self.recorder()
            said.append(str(e.exception))
            before(*args)

        with mock.patch.object(disk, "_rename", slowly), self.recorder() as r:
            r.put("logits", np.ones((len(IDS), 8), "f4"))
        self.assertIn("another process is writing it", said[0])
        with vernier_parity.open(self.at("cand.h5")) as rec:
            self.assertTrue(rec.complete and "logits" in rec)

    def test_a_forked_process_leaves_the_recording_alone(self):
        """Each way to leave, in a process of its own, since a child has a copy of the test."""
        script = """if True:
            import gc, multiprocessing, os, sys, numpy as np, vernier_parity
            way, path = sys.argv[1:]
            def child(r):
                if way == "sys.exit": sys.exit(3)
                if way == "os._exit": os._exit(3)
                if way == "exception": raise KeyError("x")
                if way == "close": r.close(); os._exit(3)
                if way == "put":
                    try: r.put("embed", np.ones((3, 4), "f4"))
                    except vernier_parity.RecordingError as e: assert "forked" in str(e), e
                    else: os._exit(9)
                    sys.exit(3)
                if way == "a new recording":
                    vernier_parity.Recorder(path + ".own", engine="m", precision="f32")
                    sys.exit(3)
                if way == "collection": gc.collect(); sys.exit(3)
            try:
                with vernier_parity.Recorder(path, engine="m", precision="f32", token_ids=[1, 2, 3]) as r:
                    for i in range(12): r.put(f"layer{i}.output", np.full((3, 9000), i, "f4"))
                    if way == "multiprocessing":
                        p = multiprocessing.get_context("fork").Process(target=sys.exit, args=(3,))
                        p.start(); p.join(); assert p.exitcode == 3
                    else:
                        pid = os.fork()
                        if pid == 0:
                            if way != "end": child(r)
                        else:
                            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                            assert status in (1, 3) or way == "end" and not status, status
                    if way in ("multiprocessing",) or pid:
                        for i in range(12, 24): r.put(f"layer{i}.output", np.full((3, 9000), i, "f4"))
            except KeyError: sys.exit(1)
            """
        for way in ("sys.exit", "os._exit", "exception", "close", "put", "collection", "end", "a new recording",
                    "multiprocessing"):
            path = self.at(way + ".h5")
            done = subprocess.run([sys.executable, "-W", "error::ResourceWarning", "-c", script, way, path],
                                  capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
            self.assertEqual(done.returncode, 0, (way, done.stderr))
            shown = program("show", "--check", path)
            self.assertEqual(shown.returncode, 0, (way, shown.stdout, shown.stderr))
            with vernier_parity.open(path) as rec:
                self.assertEqual([float(rec[f"layer{i}.output"].mean()) for i in range(24)], list(range(24)), way)
            self.assertFalse(os.path.exists(path + ".partial"))

    def test_a_recording_that_nobody_closes_keeps_its_tensors(self):
        script = """if True:
            import sys, numpy as np, vernier_parity
            r = vernier_parity.Recorder(sys.argv[1], engine="m", precision="f32", token_ids=[1, 2, 3])
            r.put("logits", np.ones((3, 4), "f4"))
            """
        done = subprocess.run([sys.executable, "-c", script, self.at("cand.h5")], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with vernier_parity.open(self.at("cand.h5.partial")) as rec:
            self.assertTrue("logits" in rec and not rec.complete)


if __name__ == "__main__":
    os.environ["VERNIER_PROGRAM"] = os.path.abspath(sys.argv.pop(1))
    unittest.main()
