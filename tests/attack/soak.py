#!/usr/bin/env python3
"""soak.py VERNIER [--all] [--without-names]: load over a long time, and nothing that grows.

  - two folders of recordings: `compare DIR DIR` judges each pair, and its memory does not grow with their number;
  - many compares in a row in one folder: the peak of the last ones is that of the first ones;
  - after all of it no file is left in the folder, or in TMPDIR (--all: or a scratch file in /tmp or /var/tmp), and no
    command had a descriptor open at its end but the standard ones.

--all: 2,000 recordings in two folders and 1,000 compares, and the recordings of many_names.py --all (not with
--without-names); it prints the numbers.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERNIER = os.path.abspath(sys.argv[1])
ALL = "--all" in sys.argv[2:]
FILES, COMPARES = (1000, 1000) if ALL else (60, 60)  # files: in each folder
STANDING = 4  # descriptors: the standard streams, and the one that notes on the sandbox are counted with
IDS = ["--ids", "1,2,3"]

# ru_maxrss of a child counts the memory of whoever started it by vfork, so a small program of
# one page stands between. It is laid over the command, too: at the end it counts the descriptors
# that are open.
HELPER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct rusage   u;
	struct timespec a, b;
	int             status = 0;
	pid_t           pid;
	if (argc < 3)
		return 99;
	clock_gettime(CLOCK_MONOTONIC, &a);
	if ((pid = fork()) == 0) {
		setenv("LD_PRELOAD", argv[1], 1);
		execv(argv[2], argv + 2);
		_exit(98);
	}
	waitpid(pid, &status, 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	getrusage(RUSAGE_CHILDREN, &u);
	printf("\n%d %ld %f\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), u.ru_maxrss,
	       (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec));
	return 0;
}
"""
OPEN_AT_END = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static pid_t own;
__attribute__((constructor)) static void begin(void) { own = getpid(); }
__attribute__((destructor)) static void count(void)
{
	DIR *d = getpid() == own ? opendir("/proc/self/fd") : NULL;
	int  n = 0;
	if (!d)
		return;
	while (readdir(d))
		n++;
	closedir(d);
	FILE *f = fopen(getenv("OPEN_AT_END"), "w");
	if (f) {
		fprintf(f, "%d", n - 3); /* . and .. and the folder itself */
		fclose(f);
	}
}
/* The program leaves without destructors. */
void _exit(int status)
{
	count();
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}
"""


def build(name, text, *options):
    with open(name + ".c", "w") as f:
        f.write(text)
    subprocess.run(["cc", "-O1", *options, name + ".c", "-o", name], check=True)
    os.unlink(name + ".c")
    return os.path.abspath(name)


class Runner:
    def __init__(self, folder):
        self.folder = folder
        self.helper = build(os.path.join(folder, "helper"), HELPER)
        self.shim = build(os.path.join(folder, "open_at_end.so"), OPEN_AT_END, "-shared", "-fPIC")
        self.count = os.path.join(folder, "open")

    def __call__(self, *arguments, expect=(0,)):
        """(peak in kB, seconds, descriptors open at the end)."""
        done = subprocess.run([self.helper, self.shim, VERNIER, *arguments], capture_output=True, text=True,
                              env={**os.environ, "OPEN_AT_END": self.count})
        status, peak, seconds = done.stdout.rpartition("\n")[0].rpartition("\n")[2].split()
        if int(status) not in expect:
            sys.exit(f"vernier {' '.join(arguments)[:200]}: exit status {status}: {done.stderr[-500:]}")
        with open(self.count) as f:
            return int(peak), float(seconds), int(f.read())


def files_of(*folders):
    found = {os.path.join(folder, name) for folder in folders for name in os.listdir(folder)}
    # Where other programs write, too, by its name (capture/recording/scratch.c).
    common = {os.path.join(folder, name) for folder in ("/tmp", "/var/tmp") for name in os.listdir(folder)
              if re.fullmatch(r"vernier-\w{6}", name)}
    return found | (common if ALL else set())


def two_folders(run, bad):
    os.mkdir("refs")
    os.mkdir("cands")
    for i in range(FILES):
        for side, name in ("refs", "ref.h5"), ("cands", "cand.h5"):
            shutil.copy(name, f"{side}/{i:04}.h5")
    os.mkdir("few")
    for i in range(FILES // 10):
        shutil.copy("ref.h5", f"few/{i:04}.h5")
    os.mkdir("few_cands")
    for i in range(FILES // 10):
        shutil.copy("cand.h5", f"few_cands/{i:04}.h5")
    small, short, _ = run("compare", "few", "few_cands", "-q")
    peak, seconds, left = run("compare", "refs", "cands", "-q")
    print(f"compare of two folders: {FILES // 10} pairs {short:.1f} s, {small} kB; {FILES} pairs {seconds:.1f} s, "
          f"{peak} kB, {left} descriptors open at the end")
    if peak > small + 4096 + 8 * FILES:  # a line of its report for each pair
        bad.append(f"compare of folders: {peak} kB for {FILES} pairs, {small} kB for {FILES // 10}")
    if left > STANDING:
        bad.append(f"compare of folders: {left} descriptors open at the end")
    for side in "refs", "cands", "few", "few_cands":
        shutil.rmtree(side)


def many_compares(run, bad):
    seen = []
    for _ in range(COMPARES):
        seen.append(run("compare", "ref.h5", "cand.h5", "-q", "--force", "-o", "report.json"))
    tenth = max(COMPARES // 10, 1)
    first, last = max(s[0] for s in seen[:tenth]), max(s[0] for s in seen[-tenth:])
    middle = sorted(s[1] for s in seen)[len(seen) // 2]
    print(f"{COMPARES} compares: peak {first} kB in the first tenth, {last} kB in the last; median {middle * 1e3:.0f} "
          f"ms; "
          f"{max(s[2] for s in seen)} descriptors open at the end")
    if last > first * 1.05 + 512:
        bad.append(f"compares in a row: {first} kB at first, {last} kB at last")
    if max(s[2] for s in seen) > STANDING:
        bad.append(f"compares in a row: {max(s[2] for s in seen)} descriptors open at the end")


def main():
    folder, tools, bad = tempfile.mkdtemp(prefix="soak-"), tempfile.mkdtemp(prefix="soak-tools-"), []
    try:
        os.chdir(folder)
        run = Runner(tools)
        os.environ["TMPDIR"] = os.path.join(tools, "tmp")
        os.mkdir(os.environ["TMPDIR"])
        places = folder, os.environ["TMPDIR"]
        for name, precision in ("ref.h5", "f32"), ("cand.h5", "f16"):
            run("capture", "ref", os.path.join(SOURCE, "fixtures", "qwen2-trained"), *IDS, "--precision", precision,
                "-o", name)
        before = files_of(*places)
        two_folders(run, bad)
        many_compares(run, bad)
        os.unlink("report.json")
        left = sorted(files_of(*places) - before)
        print(f"files left: {len(left)}")
        if left:
            bad.append(f"files left: {' '.join(left[:10])}")
    finally:
        os.chdir("/")
        shutil.rmtree(folder)
        shutil.rmtree(tools)
    if ALL and "--without-names" not in sys.argv:
        script = os.path.join(SOURCE, "tests", "bench", "many_names.py")
        if subprocess.run([sys.executable, script, VERNIER, "--all"]).returncode:
            bad.append("many_names.py --all")
    for what in bad:
        print(what)
    print(f"soak: {len(bad)} wrong")
    return len(bad) != 0


if __name__ == "__main__":
    sys.exit(main())
