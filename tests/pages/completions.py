#!/usr/bin/env python3
"""completions.py VERNIER: what bash, zsh and fish offer when Tab is pressed, each shell in a terminal of its own.

A shell that is not installed is left out, which is said; none at all: 77, skipped.
"""
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time

VERNIER = os.path.abspath(sys.argv[1])
GPU = ["gpu"] if "devices" in subprocess.run([VERNIER, "help"], capture_output=True, text=True).stdout else []
COMMANDS = ["capture", "compare", "calibrate", "synth", "help", "version"]
# what is typed, what is offered, what is not. The folder holds file.h5 and mine.yaml.
CASES = [
    ("vernier ", COMMANDS, ["file.h5"]),
    ("vernier --", ["--help", "--version"], ["capture", "file.h5"]),
    ("vernier --v", ["--version"], ["--help"]),
    ("vernier help ", ["capture", "compare", "synth", "usage.md", "guides/c.md"], ["file.h5"]),
    ("vernier help u", ["usage.md"], ["ci.md", "capture"]),
    ("vernier help capture ", [], ["file.h5", "compare"]),
    ("vernier help --", ["--man", "--man-pages", "--prefix", "--completions"], ["capture", "usage.md"]),
    ("vernier help --man ", ["capture", "version"], ["file.h5", "usage.md"]),
    ("vernier help --completions ", ["bash", "zsh", "fish"], ["file.h5", "capture"]),
    ("vernier version --", ["--verbose"], ["file.h5"]),
    ("vernier version ", [], ["file.h5", "capture"]),
    ("vernier capture ", ["ref", *GPU], ["file.h5"]),
    ("vernier capture ref ", ["file.h5"], ["gpu"]),
    ("vernier capture ref file.h5 --prec", ["--precision"], []),
    ("vernier capture ref x --precision ", ["f32", "f16-acc16"], ["file.h5"]),
    ("vernier capture ref x --threads ", [], ["file.h5"]),
    ("vernier capture ref x --temperature ", [], ["file.h5"]),
    ("vernier capture ref x --points ", [], ["file.h5"]),
    ("vernier capture ref x --ids-from ", ["file.h5"], []),
    ("vernier capture ref x -o ", ["file.h5"], []),
    ("vernier compare ", ["file.h5"], ["ref"]),
    ("vernier compare a b --limits ", ["fp32.yaml", "q8_0.yaml", "mine.yaml"], ["vllm"]),
    ("vernier compare a b --limits=q8", ["q8_0"], ["fp32.yaml"]),
    ("vernier compare a b --names ", ["hf", "llama.cpp", "mine.yaml"], ["fp32.yaml"]),
    ("vernier compare a b --allow ", ["token_ids", "config", "missing"], ["file.h5"]),
    ("vernier compare a b --allow token_ids,", ["config", "missing"], ["file.h5"]),
    ("vernier compare a b --allow token_ids,conf", ["token_ids,config"], ["file.h5"]),
    ("vernier isolate a --check CMD --allow missing,conf", ["missing,config"], []),
    ("vernier compare a b --no-r", ["--no-replay"], []),
    ("vernier explain a b --", ["--model", "--names"], ["--no-replay", "--bitwise"]),
    ("vernier compare a b --batch-row ", [], ["file.h5"]),
    ("vernier import --bits ", ["bf16", "f8_e5m2"], ["file.h5"]),
    ("vernier limits ", ["fp32.yaml", "mine.yaml"], []),
    ("vernier synth ", ["qwen2-0.5b", "tiny"], ["file.h5"]),
    ("vernier show ", ["file.h5"], []),
]


def shown(shell, folder):
    """What a shell shows for each case, by the line that was typed."""
    script = subprocess.run([VERNIER, "help", "--completions", shell], capture_output=True, text=True,
                            check=True).stdout
    home = os.path.join(folder, "home " + shell)
    os.makedirs(home)
    with open(os.path.join(home, "_vernier"), "w", encoding="utf-8") as f:
        f.write(script)
    env = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "dumb", "LC_ALL": "C.UTF-8", "COLUMNS": "400",
           "LINES": "100"}
    work = os.path.join(folder, "work")
    if shell == "fish":
        def lines(typed):
            done = subprocess.run(["fish", "--no-config", "-c", 'source $argv[1]; complete -C $argv[2]',
                                   os.path.join(home, "_vernier"), typed],
                                  capture_output=True, text=True, env=env, cwd=work)
            assert done.returncode == 0 and not done.stderr, done.stderr
            return " ".join(line.split("\t")[0] for line in done.stdout.splitlines()) + " "
        return {typed: lines(typed) for typed, _, _ in CASES}
    start = {"bash": ["bash --norc --noprofile -i",
                      "bind 'set show-all-if-ambiguous on'; bind 'set completion-query-items 0'; "
                      "bind 'set page-completions off'; bind 'set enable-bracketed-paste off'; . ~/_vernier"],
             "zsh": ["zsh -f -i", "unsetopt prompt_cr zle_bracketed_paste; LISTMAX=0; fpath=(~ $fpath); "
                     "autoload -Uz compinit; compinit -u -D; "
                     "zstyle ':completion:*' list-prompt ''"]}[shell]
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(work)
        os.execvpe(start[0].split()[0], start[0].split(), env)

    def until(mark):
        seen, end = "", time.monotonic() + 60
        while mark not in seen:
            assert time.monotonic() < end, f"{shell}: no {mark} after {seen!r}"
            seen += os.read(fd, 4096).decode("utf-8", "replace")
        return seen

    os.write(fd, f"PS1=; PS2=; stty cols 400 rows 100; {start[1]}; echo READ$((1+1))\n".encode())
    until("READ2")
    found = {}
    for i, (typed, _, _) in enumerate(CASES):
        os.write(fd, typed.encode() + b"\t")
        time.sleep(0.02)
        os.write(fd, f"\x15echo DONE$(({i}+100))\n".encode())
        out = until(f"DONE{i + 100}").rpartition("echo DONE")[0]
        out = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x07", "", out)
        found[typed] = out
    os.write(fd, b"exit\n")
    os.waitpid(pid, 0)
    os.close(fd)
    return found


def main():
    bad, tried = 0, []
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "work"))
        for name in ("file.h5", "mine.yaml"):
            open(os.path.join(folder, "work", name), "w").close()
        for shell in ("bash", "zsh", "fish"):
            if not shutil.which(shell):
                print(f"{shell}: not installed, not tried")
                continue
            found = shown(shell, folder)
            tried.append(shell)
            for typed, has, lacks in CASES:
                out = found[typed]
                for word in has:
                    if word not in out:
                        print(f"{shell}: '{typed}': no '{word}' in {out!r}")
                        bad += 1
                for word in lacks:
                    if re.search(r"(?<![\w.])" + re.escape(word) + r"(?!\w)", out.replace(typed, "")):
                        print(f"{shell}: '{typed}': '{word}' in {out!r}")
                        bad += 1
    print(f"{len(CASES)} lines in {', '.join(tried)}; {bad} wrong")
    return 77 if not tried else bad != 0


sys.exit(main())
