# Another program shortens a file while it is read: one line names it, and nothing is left behind.
cat >shorten.c <<'P'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The n-th mapped file below victim/ loses its second half. */
void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t from)
{
	static int seen;
	void      *r = ((void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap"))(
		at, n, prot, flags, fd, from);
	char       link[64], path[4096];
	struct stat s;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t k = fd > 2 ? readlink(link, path, sizeof path - 1) : -1;
	if (k > 0 && (path[k] = '\0', strstr(path, "/victim/")) && ++seen == atoi(getenv("NTH")) && stat(path, &s) == 0)
		if (truncate(path, s.st_size / 2) != 0)
			abort();
	return r;
}
P
cc -O1 -shared -fPIC -o shorten.so shorten.c -ldl || exit
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids 5,6,7 -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids 5,6,7 --inject R1@layer1.q_rope -o bad.h5 2>/dev/null
mkdir out
for command in "compare victim/ref.h5 victim/bad.h5 --model victim/model -o out/r.json" \
	"capture ref victim/model --ids 5,6,7 -o out/a.h5" \
	"capture gpu victim/model --ids 5,6,7 -o out/a.h5" "table victim/ref.h5 victim/bad.h5 -o out/t.csv" \
	"weights victim/model victim/q8_0.gguf" "isolate victim/model --ids 5,6 --inject R1@layer1.q_rope"; do
	shortened=0
	for nth in 1 2 3; do
		rm -rf victim out/*
		mkdir victim
		cp -r "$M" victim/model
		cp ref.h5 bad.h5 victim
		cp "$FIXTURES/gguf/qwen2-trained.q8_0.gguf" victim/q8_0.gguf
		NTH=$nth LD_PRELOAD=$PWD/shorten.so vernier $command >/dev/null 2>err
		s=$?
		[ $s -gt 2 ] && echo "$command, file $nth: $s" && cat err
		grep -q 'another program shortened the file' err && shortened=$((shortened + 1)) &&
			ls out | grep -v 'h5.partial$'
		ls -A "$TMPDIR"
	done
	[ $shortened -gt 0 ] && echo "${command%% victim*}: a line"
done
