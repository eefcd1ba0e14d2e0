# Two folders, their pairs shared by the processes of mpirun: the same bytes as one process gives;
# what dies ends the run.
MPI=$(dirname "$VERNIER")/vernier_mpi
[ -x "$MPI" ] && command -v mpirun >/dev/null || { echo "skipped: needs MPI (libopenmpi-dev, openmpi-bin)"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export RES_OPTIONS='timeout:1 attempts:1' # where no file has this machine's name, mpirun asks name servers for it
mpirun() { # hwloc complains of a machine without /sys
	command mpirun "$@" 2>mpirun.err
	local status=$?
	grep -v '^\[hwloc' mpirun.err >&2
	return $status
}
. "$TESTS/cli/two_folders.bash"
mkdir one many
vernier compare refs cands --summary one.json --force -o one/r.json -o one/r.html >one.out 2>one.err; echo "[$?]"
for n in 3 7; do
	mpirun -n $n "$MPI" compare refs cands --summary many.json --force -o many/r.json -o many/r.html --force \
		>many.out 2>many.err
	echo "$n: [$?]"
	cmp one.json many.json; sed "s#many/#one/#g" many.out | cmp one.out -
	grep -v '^-*$\|^Primary job\|^a non-zero exit\|^mpirun detected\|^the job to be\|Process name:\|Exit code:\|^$' \
		many.err | diff one.err - && diff -r one many && echo "the same bytes"
done
echo "== several candidates"
mkdir wrong; cp cands/p001.h5 wrong/p001.h5; cp cands/p002.h5 wrong/p017.h5; cp refs/p002.h5 wrong/p002.h5
vernier compare refs cands wrong --summary one.json --force >one.out 2>one.err; echo "[$?]"
mpirun -n 3 "$MPI" compare refs cands wrong --summary many.json --force >many.out 2>/dev/null; echo "[$?]"
cmp one.json many.json && cmp one.out many.out && echo "the same bytes"
sed -n '/^== together/,$p' many.out
echo "== a part that was asked for is done by each process alone"
mpirun -n 2 "$MPI" compare refs cands --part 2 -q --summary part.json 2>/dev/null; ls part.json
echo "== ranks that see other things"
cat >differ.sh <<'S'
[ "$OMPI_COMM_WORLD_RANK" = 0 ] || more=--strict
exec "$0" compare refs cands -q $more
S
mpirun -n 2 bash -c "$(cat differ.sh)" "$MPI" 2>said; echo "[$?]"
grep '^vernier' said | sed 's/ on [^:]*/ on HOST/'
echo "== the process of a rank is killed at a pair"
cat >kill.c <<'P'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
static pid_t rank;
__attribute__((constructor)) static void begin(void)
{
	rank = getpid();
}
int open(const char *path, int how, ...)
{
	if (getpid() != rank && strstr(path, "cands/p017"))
		kill(getpid(), SIGKILL);
	return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open"))(path, how, 0600);
}
P
cc -shared -fPIC -o kill.so kill.c -ldl || exit
for n in 2 4; do
	mpirun -n $n -x LD_PRELOAD=$PWD/kill.so "$MPI" compare refs cands --summary dead.json -q 2>said; echo "[$?]"
	grep '^vernier' said | sed 's/rank . on [^:]*/rank N on HOST/'
	ls dead.json* 2>/dev/null
done
sleep 0.5; pgrep -f "compare refs cands --summary dead.json" && echo "still running"
echo "== a build without MPI"
OMPI_COMM_WORLD_SIZE=4 vernier compare refs cands -q
echo "[$?]"
echo "== prompts of one file are shared, and the same as of one process"
printf \
	'{"prompt": "The quick", "decode": 2}\n{"prompt": "one", "decode": 2, "temperature": 0.5}\n{"ids": [5, 6, 7]}\n' \
	>p.jsonl
vernier capture ref "$M" --prompts p.jsonl -o alone 2>/dev/null
mpirun -n 3 "$MPI" capture ref "$M" --prompts p.jsonl -o shared 2>&1 | sed 's/ in [0-9.]* s (.*//'
vernier compare alone shared --bitwise --allow itself | sed -n '/^== together/,$p'
rm shared/002.h5
mpirun -n 3 "$MPI" capture ref "$M" --prompts p.jsonl -o shared 2>&1 | tail -n 1
