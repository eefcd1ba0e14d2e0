# The user's own recordings are tested as well; mutations that do not apply to them are named.
selftest() { PYTHONPATH=$TESTS/../capture/python $PYTHON -m vernier_parity selftest --vernier "$VERNIER" "$@"; }
for p in f32 f16; do
	vernier capture ref "$FIXTURES/qwen2-trained" --ids "@$FIXTURES/prompts/p017.ids" --precision $p \
		-o qwen2.$p.h5 2>/dev/null
done
selftest qwen2.f32.h5 --format json >said.json
echo "[$?]"
$PYTHON -c "
import json
s = json.load(open('said.json'))
m = s['pairs'][0]['mutations']
print(s['schema'], s['verdict'], s['mutations'] == len(m) == len({(x['group'], x['name']) for x in m}),
      s['mutations'] >= 60)
print(sorted({x['group'] for x in m}), {x['exit'] for x in m if x['outcome'] == 'caught'})
print(*[x['name'] + ': ' + x['found'] for x in m if x['outcome'] != 'caught'], sep='\n')"

# A minimal recording: mutations of facts that it lacks are not tried, and the last lines say so.
$PYTHON -c "
import h5py
s, d = h5py.File('qwen2.f32.h5'), h5py.File('least.h5', 'w')
d.attrs.update(format='vernier-checkpoint', format_version=1, complete=1)
run = d.create_group('run')
run.attrs.update(engine='somebody', precision='f32')
run['token_ids'], run['positions'] = s['run/token_ids'][()], s['run/positions'][()]
step = d.create_group('step.0')
step.attrs.update(s['step.0'].attrs)
def put(name, x):
    if isinstance(x, h5py.Dataset):
        step.create_dataset(name, data=x[()]).attrs.update({k: x.attrs[k] for k in ('order', 'layer', 'point', 'axes')})
s['step.0'].visititems(put)"
selftest least.h5 >said
echo "[$?]"
grep ^MISSED said
tail -2 said
selftest "$FIXTURES/foreign/hf-llama.h5" | tail -2

# A second name that is a tensor of its own on one side is no target; without an order there is
# one all the same.
$PYTHON -c "
import h5py, shutil
shutil.copy('qwen2.f32.h5', 'own.h5')
d = h5py.File('own.h5', 'r+')
x = d['step.0/layer1/input']
del d['step.0/layer1/input']
d['step.0/layer1'].create_dataset('input', data=x[()]).attrs.update(x.attrs)
def less(name, x):
    if isinstance(x, h5py.Dataset) and name.split('/')[-1] not in ('input', 'output', 'down_proj'):
        gone.append(name)
    x.attrs.pop('order', None)
gone = []
d['step.0'].visititems(less)
for name in gone:
    del d['step.0'][name]
d.close()
shutil.copy('qwen2.f32.h5', 'tied.h5')
d = h5py.File('tied.h5', 'r+')
gone = []
d['step.0'].visititems(less)
for name in gone:
    del d['step.0'][name]"
for pair in 'tied.h5 own.h5' 'own.h5 tied.h5'; do
	selftest $pair --only \
		'{numbers/{nan-in-*,nan},places/other-*,names/{missing,missing-in-reference,buffers-swapped,order-swapped}}' |
		grep -E '^(MISSED|not run|all)'
done

# A pair that is not correct; what cannot be asked.
selftest qwen2.f32.h5 qwen2.f16.h5 --limits fp32.yaml --only names/missing | tail -3 | sed 's/  */ /g'
echo "[${PIPESTATUS[0]}]"
vernier capture ref "$FIXTURES/qwen2-trained" --ids 5,6,7,8,9,10,11,12 --precision f16 -o other.h5 2>/dev/null
refused() {
	selftest "$@" 2>&1 | sed 's#/[^ ]*/vernier-selftest-[^/]*/[^/]*#TEMP#' | tail -1
	echo "[${PIPESTATUS[0]}]"
}
refused qwen2.f32.h5 other.h5
refused no.h5
refused qwen2.f32.h5 --vernier /nowhere/vernier
refused a b c
refused --floor qwen2.f16.h5
refused --only 'nothing*'
refused --only '{'
refused --jobs 0
refused --format xml
(ulimit -f 1; refused qwen2.f32.h5 qwen2.f16.h5 --only names/missing) | cat
ls -A "$TMPDIR"
