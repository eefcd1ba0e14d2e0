# A signal ends a command that writes a report, and leaves no partial file.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids "@$FIXTURES/prompts/p070.ids" -o ref.h5 2>/dev/null
for i in 1 2 3 4 5 6 7 8; do
	vernier capture ref "$M" --ids "@$FIXTURES/prompts/p070.ids" --precision f16 -o h$i.h5 2>/dev/null
done
cat >run.py <<'P'
import glob, os, signal, subprocess, sys, time
for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
    for _ in range(50):  # it may be done before the signal
        p = subprocess.Popen([os.environ["VERNIER"], *sys.argv[1:]], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL,
                             preexec_fn=lambda: [signal.signal(s, signal.SIG_DFL)
                                                 for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)])
        while p.poll() is None and not glob.glob("*.partial*"):
            pass
        p.send_signal(number)
        ended = p.wait()
        left = glob.glob("*.partial*")
        if ended == -number or left:
            break
        for name in "t.csv", "v.txt":
            if os.path.exists(name):
                os.remove(name)
    print(sys.argv[1], number.name, "ended" if ended == -number else ended, ", ".join(left) and "left behind"
          or "nothing is left")
    for name in left:
        os.remove(name)
P
${PYTHON:-python3} run.py table ref.h5 h1.h5 h2.h5 h3.h5 h4.h5 h5.h5 h6.h5 h7.h5 h8.h5 --first 64 -o t.csv
${PYTHON:-python3} run.py show ref.h5 logits --values v.txt
echo "== one signal ends the wait for a pipe that nobody writes to"
mkfifo pipe
cat >wait.py <<'P'
import os, signal, subprocess, sys, time
for number in signal.SIGINT, signal.SIGTERM:
    p = subprocess.Popen([os.environ["VERNIER"], *sys.argv[1:]], stderr=subprocess.DEVNULL,
                         preexec_fn=lambda: [signal.signal(s, signal.SIG_DFL) for s in (signal.SIGINT, signal.SIGTERM)])
    time.sleep(0.5)  # until it waits; a signal before that ends it too
    p.send_signal(number)
    try:
        print(sys.argv[1], number.name, "ended" if p.wait(20) == -number else p.returncode)
    except subprocess.TimeoutExpired:
        print(sys.argv[1], number.name, "ignored")
        p.kill()
P
${PYTHON:-python3} wait.py capture ref "$M" --prompts pipe -o many
${PYTHON:-python3} wait.py capture ref "$M" --ids @pipe -o one.h5
${PYTHON:-python3} wait.py isolate "$M" --ids @pipe
${PYTHON:-python3} wait.py evaluate "$M" --text pipe --candidate ref
echo "== and the wait for an engine, with all that it started; what ignores the signal, after a while"
cat >engine.py <<'P'
import os, signal, subprocess, sys, time
for number, check in ((signal.SIGINT, "touch runs; sleep 60; true"), (signal.SIGTERM, "touch runs; sleep 60; true"),
                      (signal.SIGTERM, "trap '' TERM; touch runs; sleep 60; true"),
                      (signal.SIGTERM, "(trap '' TERM; touch runs; sleep 60; true) & wait")):
    p = subprocess.Popen([os.environ["VERNIER"], "isolate", sys.argv[1], "--ids", "1,2", "--check",
                          check], stderr=subprocess.PIPE,
                         preexec_fn=lambda: [signal.signal(s, signal.SIG_DFL) for s in (signal.SIGINT, signal.SIGTERM)])
    while not os.path.exists("runs"):
        time.sleep(0.01)
    os.remove("runs")
    p.send_signal(number)
    try:
        said = p.communicate(timeout=20)[1].decode().strip()  # until nobody has this stderr any more
    except subprocess.TimeoutExpired:
        said = "goes on"
        p.kill()
    print(number.name, p.returncode, said)
P
${PYTHON:-python3} engine.py "$M"
echo "== an engine that reads the terminal is stopped by it"
cat >terminal.py <<'P'
import os, pty, select, signal, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(os.environ["VERNIER"], ["vernier", "isolate", sys.argv[1], "--ids", "1,2", "--check",
                                     "cat /dev/tty; true"])
said = b""
try:
    while select.select([fd], [], [], 20)[0]:
        said += os.read(fd, 4096)
    print("goes on")
    os.kill(pid, signal.SIGKILL)
except OSError:  # its last descriptor is closed
    pass
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode().strip().split("isolate: ")[-1])
P
${PYTHON:-python3} terminal.py "$M"
echo "== files that another run of the same number left are no obstacle"
bash -c 'touch r.json.$$.partial; exec "$VERNIER" compare ref.h5 h1.h5 -q -o r.json'; echo $?
ls r.json
echo "== a signal in the moment after a file or a folder was created"
cat >created.c <<'P'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static void created(const char *path)
{
	const char *times = getenv("TIMES");
	for (int i = times ? atoi(times) : 1; (strstr(path, ".partial") || strstr(path, "vernier-")) && i > 0; i--)
		kill(getpid(), SIGTERM);
}
int open(const char *path, int how, ...)
{
	const int fd = ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open"))(path, how, 0600);
	if (fd >= 0 && how & O_CREAT)
		created(path);
	return fd;
}
int mkdir(const char *path, mode_t mode)
{
	const int r = ((int (*)(const char *, mode_t))dlsym(RTLD_NEXT, "mkdir"))(path, mode);
	created(path);
	return r;
}
char *mkdtemp(char *path)
{
	char *made = ((char *(*)(char *))dlsym(RTLD_NEXT, "mkdtemp"))(path);
	created(path);
	return made;
}
P
cc -O1 -shared -fPIC -o created.so created.c -ldl || exit
cat >renamed.c <<'P'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void once(void)
{
	static int sent;
	if (!sent++)
		kill(getpid(), SIGTERM);
}
int rename(const char *from, const char *to)
{
	once();
	return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}
int link(const char *from, const char *to)
{
	once();
	return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "link"))(from, to);
}
int renameat2(int a, const char *from, int b, const char *to, unsigned how)
{
	once();
	return ((int (*)(int, const char *, int, const char *, unsigned))dlsym(RTLD_NEXT, "renameat2"))(
		a, from, b, to, how);
}
P
cc -O1 -shared -fPIC -o renamed.so renamed.c -ldl || exit
there() { find . "$TMPDIR" | sort; }
: >after
there >before
ended() {
	LD_PRELOAD=$PWD/$1 vernier $2 >/dev/null 2>&1
	echo "${2%% *}: $?"
	there >after
	diff before after
}
for command in "compare ref.h5 h1.h5 -q -o c.json" "show ref.h5 logits --values w.txt" \
	"synth qwen2-0.5b --layers 1 -o m" "isolate $M --ids 1,2 --check true"; do
	ended created.so "$command"
done
echo "== two of them"
TIMES=2 ended created.so "isolate $M --ids 1,2 --check true"
echo "== two of them at once, the second to another thread"
cat >at_once.c <<'P'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int sent;

static void *wait_for(void *unused)
{
	for (;;)
		pause();
	return unused;
}
int sigaction(int number, const struct sigaction *now, struct sigaction *old)
{
	if (sent == 1 && now) {
		sent = 2;
		kill(getpid(), SIGTERM);
		usleep(10000);
	}
	return ((int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction"))(
		number, now, old);
}
char *mkdtemp(char *path)
{
	pthread_t thread;
	char     *made = ((char *(*)(char *))dlsym(RTLD_NEXT, "mkdtemp"))(path);
	if (strstr(path, "vernier-") && !sent++) {
		pthread_create(&thread, NULL, wait_for, NULL);
		usleep(10000);
		kill(getpid(), SIGTERM);
	}
	return made;
}
P
cc -O1 -shared -fPIC -o at_once.so at_once.c -ldl -lpthread || exit
there >before
ended at_once.so "isolate $M --ids 1,2 --check true"
echo "== a signal in the moment before a file or a folder gets its name"
for command in "compare ref.h5 h1.h5 -q -o c.json" "show ref.h5 logits --values w.txt"; do
	ended renamed.so "$command"
done
vernier synth tiny -o m --force >/dev/null
there >before
ended renamed.so "synth tiny -o m --force"
echo "[$?]"
echo "== a folder that cannot be removed is named, whatever else went wrong"
cat >kept.c <<'P'
#include <errno.h>

int unlinkat(int in, const char *path, int how)
{
	(void)in, (void)path, (void)how;
	errno = EACCES;
	return -1;
}
P
cc -O1 -shared -fPIC -o kept.so kept.c || exit
for how in "--check 'exit 9'" "--inject R1@layer1.q_rope"; do
	LD_PRELOAD=$PWD/kept.so sh -c "\"$VERNIER\" isolate \"$M\" --ids 1,2 $how" 2>&1 >/dev/null |
		sed 's/[^ ]*vernier-isolate-[^ ]*/FOLDER/'
done
rm -rf "$TMPDIR"/vernier-isolate-*
echo "== a library that ends the program"
OMP_STACKSIZE=200000G vernier capture ref "$M" --ids 1,2 --threads 2 -o none.h5 2>err
echo "[$?]"
tail -n 1 err
[ -e none.h5 ] && echo "NONE.H5 IS THERE"
rm -f none.h5.partial
