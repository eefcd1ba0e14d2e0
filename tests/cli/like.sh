# A run that follows a recording: its tokens in its calls, and of each call what it has.
vernier synth tiny --layers 6 --dtype f32 -o m 2>/dev/null
cat >edit.py <<'P'
import editing as h5py, shutil, sys
shutil.copy(sys.argv[1], sys.argv[2])
f = h5py.File(sys.argv[2], 'r+')
exec(sys.argv[3])
P
edit() { $PYTHON edit.py "$@"; }
has() { # the steps of a recording, with their rows and names
	$PYTHON -c "
import sys
import h5py
f = h5py.File(sys.argv[1], 'r')
for i in range(len([k for k in f if k.startswith('step.')])):
    s, names = f['step.%d' % i], []
    s.visititems(lambda name, o: names.append(name.replace('/', '.')) if isinstance(o, h5py.Dataset) else None)
    print(i, *(int(s.attrs.get(k, -1)) for k in ('position', 'tokens', 'first_row', 'rows')), *sorted(names))" "$1"
}
follow() { # follows it, and compares
	vernier capture ref m --like "$@" -o ref.h5 --force 2>&1 | sed 's/ in .*//'
	vernier compare ref.h5 "$1" "${@:2}" --model m | grep -E '^(warning|missing|verdict)'
}
vernier capture ref m --ids 5,9,2,7,1,8,3 --force-ids 4,6 --points 'layer*.output' --points logits \
	-o some.h5 2>/dev/null
follow some.h5
has ref.h5
vernier capture ref m --ids 5,9,2,7,1,8,3 --tokens 2-4 --points 'layer{1,2,4}.*' -o rows.h5 2>/dev/null
follow rows.h5
has ref.h5 | cut -c1-80

echo "== a call of which nothing was kept, chunks, a checkpoint of one step alone"
edit some.h5 calls.h5 "
g = f['step.0']
for k in list(g): del g[k]
g.attrs.update(first_row=0, rows=0)
del f['step.2/logits'], f['step.1/layer3/output']"
follow calls.h5
has ref.h5

echo "== another engine's names, one of several prompts"
edit some.h5 names.h5 "
del f['plan'], f['model']
for s in (f['step.0'], f['step.1'], f['step.2']):
    s['my.0.out'], s['my.1.out'] = s['layer0/output'], s['layer1/output']
    for k in list(s):
        if k.startswith('layer'): del s[k]"
printf 'version: 1\nname: mine\nrules:\n  - { from: "my.{n}.out", to: "layer{n}.output" }\n' >mine.yaml
follow names.h5 --names mine.yaml
vernier capture ref m --like names.h5 -o ref.h5 --force 2>&1 | sed 's/ in .*//'
edit some.h5 batch.h5 "
import numpy as np
del f['plan'], f['model'], f['step.1'], f['step.2']
for k in ('token_ids', 'positions'):
    a = f['run'][k][:7]
    del f['run'][k]
    f['run'][k] = np.stack([a, a[::-1] if k == 'token_ids' else a]).astype('<i4')
names = []
f['step.0'].visititems(lambda name, o: names.append(name) if isinstance(o, h5py.Dataset) else None)
for name in names:
    x, axes = f['step.0'][name][()], f['step.0'][name].attrs['axes']
    del f['step.0'][name]
    f['step.0'][name] = np.stack([x + 1, x])
    f['step.0'][name].attrs['axes'] = 'batch ' + (axes.decode() if isinstance(axes, bytes) else axes)"
say capture ref m --like batch.h5 -o ref.h5 --force
say capture ref m --ids-from batch.h5 -o ref.h5 --force
say capture ref m --ids-from batch.h5 --batch-row 2 -o ref.h5 --force
vernier capture ref m --like batch.h5 --batch-row 1 -o ref.h5 --force 2>&1 | sed 's/ in .*//'
vernier show ref.h5 | grep '^  tokens'
vernier capture ref m --ids-from batch.h5 --batch-row 0 -o ref.h5 --force 2>&1 | sed 's/ in .*//'
vernier show ref.h5 | grep '^  tokens'

echo "== what cannot be followed"
edit names.h5 none.h5 "
for i in range(3):
    for k in list(f['step.%d' % i]): del f['step.%d' % i][k]
f['step.0/other'] = [1.0]
f['step.0/other'].attrs['axes'] = 'thing'"
say capture ref m --like none.h5 -o ref.h5 --force
say capture ref m --like some.h5 -o some.h5 --force
say capture ref m --like some.h5 --ids 1,2 -o x.h5
say capture ref m --like some.h5 --points logits -o x.h5
say capture ref m --ids 1,2 --names hf -o x.h5
say capture ref m --ids 1,2 --batch-row 0 -o x.h5
say capture ref m --like nothing.h5 -o x.h5
