# No output costs a file that somebody has: neither PATH.partial, nor an input under any name, nor
# what stands where a model or a dump is to be written.
M=$FIXTURES/qwen2-trained
HEADER=$(dirname "$TESTS")/capture/include
rec() { vernier capture ref "$M" "$@" 2>said; local s=$?; grep -v ' tensors, ' said; echo "[$s]"; }
kept() { [ "$(md5sum <"$1")" = "$sum" ] && echo "$1: kept" || echo "$1: CHANGED"; }
sum_of() { sum=$(md5sum <"$1"); }
begun() { # FILE: makes FILE.partial of a run that is killed
	SIGNAL_WHEN="$VERNIER show $1.partial 2>/dev/null | grep -q '^step.1 '" $PYTHON "$TESTS/support/signal_at.py" KILL \
		"$1.partial" "$VERNIER" capture ref "$M" --ids 1,5,9 --decode 400 -o "$1" 2>/dev/null
	[ -s "$1.partial" ] || echo "NO $1.partial"
}
vernier capture ref "$M" --ids 1,2,3 -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids 1,2,3 --precision f16 -o half.h5 2>/dev/null

echo "== what an interrupted run left is overwritten"
begun run.h5
rec --ids 1,2 -o run.h5
ls run.h5*
: >empty.h5.partial
rec --ids 1,2 -o empty.h5
printf 'vernier begins a recording here\n' >older.h5.partial
rec --ids 1,2 -o older.h5
begun in.h5
$PYTHON -c "import numpy as np; np.savez('a.npz', logits=np.ones((3, 512), 'f4'))"
vernier import a.npz --ids 3,1,4 --precision f32 -o in.h5 2>/dev/null; echo "[$?]"

echo "== unless the same command reads it"
begun run2.h5
sum_of run2.h5.partial
rec --ids-from run2.h5.partial -o run2.h5
rec --ids 1 --force-ids-from run2.h5.partial -o run2.h5 --force
ln -s run2.h5.partial link.h5
rec --ids-from link.h5 -o run2.h5
kept run2.h5.partial

echo "== or it has a second name"
ln run2.h5.partial second.h5
rec --ids 1,2 -o run2.h5
kept second.h5

echo "== anything else is kept"
other() { # FILE: as a .partial
	sum_of "$1"; cp "$1" x.h5.partial
	rec --ids 1,2,3 -o x.h5
	kept x.h5.partial
	rec --ids 1,2,3 -o x.h5 --force
	vernier import a.npz --ids 3,1,4 --precision f32 -o x.h5 2>&1
	kept x.h5.partial
	rm x.h5.partial; test -e x.h5 && echo "X.H5 IS THERE"
}
echo precious >notes
head -c 20000 /dev/zero >zeros
printf '\211HDF\r\n\032\n' >signature
head -c 2000 ref.h5 >cut.h5
printf '\211HDF\r\n\032\n vernier-checkpoint, complete\0' >mine.h5
for file in notes zeros signature ref.h5 cut.h5 mine.h5; do echo "-- $file"; other $file; done
echo "-- a pipe, a link"
mkfifo x.h5.partial; rec --ids 1,2,3 -o x.h5; rm x.h5.partial
ln -s nowhere x.h5.partial; rec --ids 1,2,3 -o x.h5; rm x.h5.partial

echo "== a reference, weights and tokens of that name"
cp ref.h5 b.h5.partial; sum_of b.h5.partial
rec --ids 1,2,3 --precision f16 --against b.h5.partial -o b.h5
kept b.h5.partial
cp -r "$M" m; mv m/model.safetensors m/k.h5.partial; ln -s k.h5.partial m/model.safetensors; sum_of m/k.h5.partial
vernier capture ref m --ids 1,2 -o m/k.h5 2>&1
kept m/k.h5.partial
printf 1,2 >t.h5.partial; sum_of t.h5.partial
rec --ids @t.h5.partial -o t.h5
kept t.h5.partial
mkdir refs; cp ref.h5 refs/001.h5.partial; ln -s 001.h5.partial refs/001.h5; echo 'one two' >p
sum_of refs/001.h5.partial
mkdir outs; ln refs/001.h5.partial outs/001.h5.partial
rec --prompts p --against refs -o outs
kept refs/001.h5.partial

echo "== an input under another name, with --force"
vernier compare ref.h5 half.h5 -q --format json -o base.json
ln base.json again.json; sum_of base.json
say compare ref.h5 half.h5 -q --baseline base.json -o again.json --force
kept base.json
ln half.h5 hard.h5; sum_of half.h5
rec --ids-from half.h5 -o hard.h5 --force
kept half.h5

mkdir one two; for name in a b; do cp ref.h5 one/$name.h5; cp half.h5 two/$name.h5; done
for i in 1 2; do vernier compare one two -q --part $i/2 --summary p$i.json; done
ln p1.json p.json; sum_of p1.json
say merge p1.json p2.json -o p.json --force
kept p1.json

echo "== a model where synth writes"
mkdir s.partial; cp m/config.json s.partial; cp m/k.h5.partial s.partial/model.safetensors
sum_of s.partial/model.safetensors
say synth tiny -o s
kept s.partial/model.safetensors
mv s.partial s
say synth tiny -o s --force
kept s/model.safetensors
mkdir c.partial; cp m/config.json c.partial; sum_of c.partial/config.json
say synth tiny -o c
kept c.partial/config.json
mkdir d.partial; : >d.partial/model.safetensors
vernier synth tiny -o d >/dev/null; echo "[$?]"
vernier synth tiny -o d --force >/dev/null; echo "[$?]"

echo "== a page where help --man-pages writes"
mkdir man; echo mine >man/vernier-show.1; sum_of man/vernier-show.1
say help --man-pages man
kept man/vernier-show.1
rm man/vernier-show.1
vernier help --man-pages man; vernier help --man-pages man; echo "[$?] $(ls man | wc -l)"

echo "== a file of a dump"
cat >r.c <<'C'
#define VERNIER_RECORD_IMPLEMENTATION
#include "vernier_record.h"
int main(void)
{
	const int32_t  id = 3;
	const float    x[6] = { 0 };
	const int64_t  shape[] = { 1, 6 };
	vernier_record r;
	vernier_record_open(&r, "dump", "x", "f32");
	vernier_record_step(&r, &id, 1);
	vernier_record_put(&r, "embed", NULL, "f32", x, 2, shape);
	printf("%d %s\n", vernier_record_close(&r), vernier_record_error(&r));
	return 0;
}
C
cc -std=c99 -I"$HEADER" r.c -o r || exit
for name in 000000.embed.npy 000000.embed.npy.part; do
	rm -rf dump; mkdir dump; echo mine >dump/$name; sum_of dump/$name
	./r
	kept dump/$name
done
rm -rf dump; ./r; ./r; ls dump

echo "== a name that cannot be is refused before the work"
long=$(printf 's%.0s' {1..245})
for file in "$long" each.a.json ./each.b.json; do
	vernier compare one two -q -o each.json --summary "$file" --force 2>&1; echo "[$?] $(ls each.* 2>/dev/null)"
done
vernier compare ref.h5 half.h5 -q -o old.a.json; cp old.a.json old.b.json; sum_of old.a.json
say compare one two -q --baseline old.json --summary ./old.a.json --force
kept old.a.json
say compare ref.h5 half.h5 -o "$long"
say capture ref "$M" --ids 1 -o "${long}long"
say show ref.h5 logits --values "$long.npy"
say calibrate ref.h5 half.h5 -o "$long"
