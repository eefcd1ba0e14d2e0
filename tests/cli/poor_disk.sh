# File systems that lack RENAME_NOREPLACE, links or fsync: each output appears all the same, and
# none replaces what appeared meanwhile.
M=$FIXTURES/qwen2-trained
cat >poor.c <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int lacks(const char *what)
{
	const char *list = getenv("LACKS");
	return list && strstr(list, what);
}
static int refuse(int why)
{
	errno = why;
	return -1;
}
/* Another program is faster, if OTHER is set. */
int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
	(void)a, (void)b, (void)from, (void)flags;
	if (getenv("OTHER")) {
		const int fd = open(to, O_WRONLY | O_CREAT, 0666);
		(void)!write(fd, "theirs\n", 7);
		close(fd);
	}
	return refuse(EINVAL);
}
int link(const char *from, const char *to)
{
	return lacks("link") ? refuse(EPERM) : linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int fsync(int fd)
{
	(void)fd;
	return refuse(lacks("eio") ? EIO : lacks("enotsup") ? ENOTSUP : EINVAL);
}
C
cc -O1 -shared -fPIC -o poor.so poor.c || exit
vernier capture ref "$M" --ids 1,2,3 -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids 1,2,3 --precision f16 -o half.h5 2>/dev/null
$PYTHON -c "import numpy as np; np.savez('a.npz', logits=np.ones((3, 512), 'f4'))"
poor() { # OUTPUT COMMAND...
	local to=$1; shift
	LD_PRELOAD=$PWD/poor.so "$VERNIER" "$@" >said 2>&1
	echo "$to [$?] $(test -s "$to" && echo there)"
	grep 'vernier [a-z]*: ' said
	case $(head -c 7 "$to" 2>/dev/null | tr -d '\0') in theirs) echo "theirs is kept" ;; esac
	rm -rf "$to"
}
all() {
	poor c.h5 capture ref "$M" --ids 1,2,3 -o c.h5
	poor i.h5 import a.npz --ids 3,1,4 --precision f32 -o i.h5
	poor r.json compare ref.h5 half.h5 -q -o r.json
	poor v.npy show ref.h5 logits --values v.npy
	poor l.yaml calibrate ref.h5 half.h5 -o l.yaml
	ls *.partial 2>/dev/null; rm -f *.partial
}
for lacks in "" link "link enotsup"; do
	echo "== lacks renameat2, fsync $lacks"
	export LACKS=$lacks; all
	LD_PRELOAD=$PWD/poor.so "$VERNIER" synth tiny -o model >/dev/null; echo "synth [$?]"; rm -r model
	[ -n "$(find . -newer poor.so -size 0 -name '*.[hjnly]*')" ] && echo "AN EMPTY FILE IS LEFT"
done
echo "== and another program is faster"
for lacks in "" link; do OTHER=1 LACKS=$lacks all; done
echo "== a sync that lost something"
export LACKS=eio
poor c.h5 capture ref "$M" --ids 1,2,3 -o c.h5
LD_PRELOAD=$PWD/poor.so "$VERNIER" synth tiny -o model; echo "[$?]"
