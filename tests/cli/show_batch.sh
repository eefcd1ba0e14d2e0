# A recording of several prompts says so, and each has its line.
$PYTHON -c "
import h5py, numpy as np
f = h5py.File('batch.h5', 'w')
f.attrs['format'], f.attrs['format_version'], f.attrs['complete'] = 'vernier-checkpoint', 1, 1
run = f.create_group('run')
run.attrs['engine'], run.attrs['precision'] = 'somebody', 'f32'
ids = np.arange(63, dtype='i4').reshape(3, 21) * 7
at = np.tile(np.arange(21, dtype='i4'), (3, 1))
at[2, 19:] = -1  # padding
run['token_ids'], run['positions'] = ids, at
f.create_group('step.0').attrs.update(position=0, tokens=21)
d = f.create_dataset('step.0/embed', data=np.ones((3, 21, 4), dtype='f4'))
d.attrs['axes'] = 'batch token hidden'"
vernier show batch.h5 | sed -n '/^run/,/^$/p'
vernier show batch.h5 --format json | $PYTHON -c "
import json, sys
r = json.load(sys.stdin)
print(r['batch'], len(r['token_ids']), len(r['positions']))"
vernier capture ref "$FIXTURES/qwen2-trained" --ids 5,9,5 -o one.h5 2>/dev/null
vernier show one.h5 | grep -E '^  (batch|tokens)'
vernier show one.h5 --format json | grep '"batch"'
