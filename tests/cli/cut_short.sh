# Captures that do not reach their end: nothing is passed off as whole.
export M=$FIXTURES/qwen2-trained
seq -s, 1 510 >ids
complete() { $PYTHON -c "
import h5py, sys
print('complete =', int(h5py.File(sys.argv[1], 'r').attrs['complete']))" "$1"; }

vernier synth qwen2-0.5b -o slow --layers 1
run="$VERNIER capture ref slow --ids 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16 --precision f16-acc16 --points *"

echo "== an interrupt in the middle"
set -f
$PYTHON "$TESTS/support/signal_at.py" INT int.h5.partial $run -o int.h5
ls
complete int.h5.partial
vernier compare int.h5.partial int.h5.partial --allow itself >said 2>&1
echo "[$?]"
grep -io 'incomplete' said | head -n 1
rm -f int.h5.partial said

echo "== kill -9 in the middle"
$PYTHON "$TESTS/support/signal_at.py" KILL kill.h5.partial $run -o kill.h5
set +f
ls
complete kill.h5.partial
vernier show kill.h5.partial 2>/dev/null | grep -o INCOMPLETE
rm -f kill.h5.partial

echo "== an interrupt and kill -9 while decoding: the steps it came to, with their ids, and no others"
for s in INT KILL; do
	set -f
	# numbers are in the file before a state of it that names them: that happens ten times a second,
	# the disk permitting
	SIGNAL_WHEN="$VERNIER show dec.h5.partial 2>/dev/null | grep -q '^step.1 '" \
		$PYTHON "$TESTS/support/signal_at.py" $s dec.h5.partial \
		$VERNIER capture ref slow --ids 5,6,7 --decode 400 --points layer* -o dec.h5
	set +f
	$PYTHON -c "
import h5py
f = h5py.File('dec.h5.partial', 'r')
ids, steps = f['run/token_ids'][()].tolist(), sum(k.startswith('step.') for k in f)
known = [i for i in ids if i >= 0]
print(len(ids), 'places;', 'as many ids as steps' if 0 <= len(known) - 3 - (steps - 1) <= (1 if '$s' == 'INT' else 1000)
      else (len(known), steps),
      ids[:3], 'and then -1' if ids[len(known):] == [-1] * (len(ids) - len(known)) and len(known) < len(ids) else ids)"
	vernier show dec.h5.partial 2>/dev/null | grep -qE '^step.0: 3 tokens|^step.1 ' && echo "and its steps are shown"
	rm dec.h5.partial
done
rm -r slow

echo "== a full disk"
(ulimit -f 200; trap '' XFSZ; vernier capture ref "$M" --ids @ids -o full.h5 2>err; echo "[$?]")
grep -c . err
grep -oE 'full.h5[^:]*: [^;:]*' err | head -n 1
ls | grep -v err
[ -e full.h5 ] && echo "FULL.H5 IS THERE"

echo "== no Vulkan device"
VK_DRIVER_FILES=/nowhere.json VK_ICD_FILENAMES=/nowhere.json vernier capture gpu "$M" --ids 1,2 -o none.h5 2>err
s=$?
[ $s = 2 ] && [ "$(grep -c . err)" = 1 ] && echo "one line, [2]" || { cat err; echo "[$s]"; }
VK_DRIVER_FILES=/nowhere.json VK_ICD_FILENAMES=/nowhere.json vernier devices >/dev/null 2>&1
echo "devices [$?]"
echo "== behind a user block, and cut there"
vernier capture ref "$FIXTURES/qwen2-trained" --ids 1,2,3 --points logits -o whole.h5 2>/dev/null
$PYTHON -c "
import h5py
with h5py.File('whole.h5') as a, h5py.File('block.h5', 'w', userblock_size=512) as b:
    b.attrs.update(a.attrs)
    for name in a:
        a.copy(name, b)"
vernier show block.h5 | head -n 1
head -c 2000 block.h5 >less.h5
say show less.h5
