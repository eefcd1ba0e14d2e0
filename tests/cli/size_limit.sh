# A limit on the size of files (ulimit -f): every command that writes ends with status 2 and one
# line, and leaves nothing.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids 1,2,3,4,5,6,7,8 -o a.h5 2>/dev/null
vernier capture ref "$M" --ids 1,2,3,4,5,6,7,8 --precision bf16 -o b.h5 2>/dev/null
python3=${PYTHON:-python3}
$python3 -c "
import numpy as np
np.savez('a.npz', **{'layer%d.output' % i: np.zeros((4, 48), 'f4') for i in range(40)})"
before=$(ls; ls "$TMPDIR")
limited() {
	echo "== $1"
	shift
	# The limit also applies to the output of this script, which therefore goes through a pipe.
	(ulimit -f 1; vernier "$@" 2>&1 >/dev/null; echo "[$?]") |
		sed 's#[^ ]*/vernier-isolate-[A-Za-z0-9]*#TEMP#g' | cat
	[ "$(ls; ls "$TMPDIR")" = "$before" ] || { echo "LEFT:"; ls; ls "$TMPDIR"; }
}
limited "compare, JSON" compare a.h5 b.h5 --format json -o out.json
limited "compare, HTML" compare a.h5 b.h5 --format html -o out.html
limited "compare, two reports" compare a.h5 b.h5 -o out.json -o out.html
limited explain explain a.h5 b.h5 --model "$M" -o out.json
limited calibrate calibrate a.h5 b.h5 -o limits.yaml
limited evaluate evaluate "$M" --ids 1,2,3,4,5,6,7,8 -o out.json
limited isolate isolate "$M" --ids 1,2,3 -o out.json
limited capture capture ref "$M" --ids 1,2,3 -o c.h5
limited import import a.npz --ids 1,2,3,4 -o c.h5
for kib in 4 8 16 64; do # nothing but the plan, or some tensors, find room
	(ulimit -f $kib; vernier import a.npz --ids 1,2,3,4 -o c.h5 2>&1; echo "[$?]") |
		sed -E 's/(layer[0-9]+.output|its structure)/IT/'
done
[ -e c.h5 -o -e c.h5.partial ] && echo "LEFT c.h5"
limited synth synth tiny -o model
