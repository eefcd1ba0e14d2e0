#!/usr/bin/env python3
"""guide_pytorch.py VERNIER [GUIDE]: specs/guides/GUIDE.md, pytorch.md by default, does what it says, block by block, as
written.

A block of sh is run and must succeed; each line of a block of text must be in the output of the
block before; a block of python is saved under the name in its first line. `python` and `pip` are
this Python's, and install only into the test's folder. 77, skipped, without transformers.
"""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WARM = os.path.join(SOURCE, "tests", "support", "warm.py")


def main():
    for module in "torch", "transformers":  # importing them takes seconds, and this script does not use them
        if not importlib.util.find_spec(module):
            print(f"SKIPPED: no {module} in this Python")
            sys.exit(77)
    with open(os.path.join(SOURCE, "specs", "guides", f"{(sys.argv[2:] or ['pytorch'])[0]}.md"), encoding="utf-8") as f:
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", f.read(), re.M | re.S)
    with tempfile.TemporaryDirectory() as folder:
        programs, packages = os.path.join(folder, "bin"), os.path.join(folder, "packages")
        os.mkdir(programs)
        os.symlink(os.path.abspath(sys.argv[1]), os.path.join(programs, "vernier"))
        with open(os.path.join(programs, "python"), "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{WARM}" "$@"\n')
        os.chmod(os.path.join(programs, "python"), 0o755)
        os.mkdir(os.path.join(folder, "capture"))  # a copy, because pip builds in the folder that it installs
        subprocess.run(["cp", "-r", os.path.join(SOURCE, "capture", "python"), os.path.join(folder, "capture")],
                       check=True)
        env = dict(os.environ, MODEL=os.path.join(SOURCE, "fixtures", "qwen3-trained"),
                   PYTHONPATH=os.pathsep.join([packages, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
                   LC_ALL="C.UTF-8",
                   PATH=os.pathsep.join([programs, os.path.dirname(sys.executable), os.environ["PATH"]]),
                   PIP_TARGET=packages,
                   PIP_NO_DEPS="1", PIP_NO_INDEX="1", PIP_NO_BUILD_ISOLATION="0", PIP_DISABLE_PIP_VERSION_CHECK="1")
        said, bad, run = "", 0, {"sh": 0, "text": 0, "python": 0}
        for language, text in blocks:
            run[language] += 1
            if language == "python":
                with open(os.path.join(folder, text.split()[1]), "w", encoding="utf-8") as f:
                    f.write(text)
            elif language == "sh":
                done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=folder, env=env,
                                      stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)
                said = done.stdout
                if done.returncode:
                    bad += 1
                    print(f"{text}ends with status {done.returncode}:\n{said}")
            else:
                missing = [line for line in text.splitlines() if line not in said]
                if missing:
                    bad += 1
                    print(f"was not said: {missing}, but\n{said}")
        print(f"{run['sh']} blocks run, {run['text']} answers, {run['python']} programs; {bad} bad")
    sys.exit(1 if bad or 0 in run.values() else 0)


if __name__ == "__main__":
    main()
