#!/usr/bin/env python3
"""interpreters.py VERSION VERNIER: the package with another Python, 3.9 to 3.13: `pip install` of the source brings all
that it needs, and README's first recording works; with the oldest and the newest, tests of the recorder pass.

The interpreter is pythonVERSION of the PATH or of ~/.pyenv. It gets a virtual environment in a temporary folder. 77,
skipped: there is no such interpreter, or no package index.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
ENDS = "3.9", "3.13"
SHORT = {
    "python_recorder.py": ["Manners.test_the_module_shows_a_recording",
                           "Manners.test_nothing_is_printed_that_a_terminal_would_obey"],
    "python_recorder_files.py": ["TheFile.test_a_forked_process_leaves_the_recording_alone",
                                 "TheFile.test_the_unfinished_file_opens_as_soon_as_it_has_a_name"],
    "python_selftest.py": ["ACommandThatCanFail.test_what_the_program_finds_is_caught",
                           "ACommandThatCanFail.test_a_program_that_finds_nothing_misses_everything",
                           "NoVerdictFromTrouble.test_a_signal_leaves_nothing"],
}


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def found(version):
    """The first interpreter of this version that runs, and has venv."""
    pyenv = sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python{version}")))
    for path in [shutil.which(f"python{version}"), *pyenv]:
        if path and subprocess.run([path, "-c", "import venv, ensurepip, sys; "
                                    f"sys.exit('%d.%d' % sys.version_info[:2] != '{version}')"],
                                   capture_output=True).returncode == 0:
            return path
    return skip(f"no Python {version} here")


def main():
    version, vernier = sys.argv[1:]
    path = found(version)
    with tempfile.TemporaryDirectory() as folder:
        package, home = os.path.join(folder, "package"), os.path.join(folder, "venv")
        subprocess.run([path, "-m", "venv", home], check=True)
        python = os.path.join(home, "bin", "python")
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "0", "--timeout", "15"]
        if subprocess.run([*pip, "scikit-build-core>=0.10"]).returncode:
            skip("no package index")
        shutil.copytree(os.path.join(SOURCE, "capture", "python"), package)  # pip builds in the folder that it installs
        subprocess.run([*pip, "--no-build-isolation", package], check=True)
        # README's first recording: no warning of missing digests, and they are there
        subprocess.run([python, "-W", "error", "-c", """if True:
            import sys, numpy as np, vernier_parity
            assert "site-packages" in vernier_parity.__file__
            with vernier_parity.Recorder(sys.argv[1], engine="mine", precision="f32", token_ids=[1, 2, 3]) as r:
                r.model(sys.argv[2])
                r.put("logits", np.ones((3, 4), "f4"))
            assert len(vernier_parity.open(sys.argv[1]).attributes("logits")["digest"]) == 32
            print(sys.version.split()[0], "recorded with numpy", np.__version__)
            """, os.path.join(folder, "a.h5"), os.path.join(SOURCE, "fixtures", "qwen2-trained")], check=True)
        bad = 0
        for script, tests in SHORT.items() if version in ENDS else ():
            bad += subprocess.run([python, "-W", "ignore", os.path.join(HERE, script), vernier,
                                   *tests]).returncode != 0
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
