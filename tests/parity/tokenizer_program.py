"""tokenizer_program.py: how scripts talk to the program of tokenize.c."""

import struct
import subprocess
import sys


def encode(program, tokenizer, texts, *options):
    """The line that the program prints for each text (bytes): its ids, or what was wrong."""
    frames = b"".join(struct.pack("<I", len(t)) + t for t in texts)
    done = subprocess.run([program, tokenizer, *options], input=frames, capture_output=True)
    if done.returncode:
        sys.exit(f"{tokenizer}: status {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode().split("\n")[:-1]
