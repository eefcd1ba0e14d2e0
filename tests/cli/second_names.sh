# A tensor under two names, compressed in the reference; the candidate's second one is its own,
# and cannot be read.
vernier capture ref "$FIXTURES/qwen2-trained" --ids "@$FIXTURES/prompts/p070.ids" -o ref.h5 2>/dev/null
$PYTHON -c "
import h5py, shutil
shutil.copy('ref.h5', 'cand.h5')
def replace(f, name, x, attributes):
    d = f.create_dataset(name, data=x, chunks=x.shape, compression='gzip', fletcher32=True)
    for k, v in attributes.items():
        d.attrs[k] = v
    return d
with h5py.File('ref.h5', 'r+') as f:
    d = f['step.0/layer0/output']
    x, attributes = d[()], dict(d.attrs)
    del f['step.0/layer0/output'], f['step.0/layer1/input']
    replace(f, 'step.0/layer0/output', x, attributes)
with h5py.File('cand.h5', 'r+') as f:
    del f['step.0/layer1/input']
    chunk = replace(f, 'step.0/layer1/input', x, attributes).id.get_chunk_info(0)
    at = chunk.byte_offset + chunk.size // 2
with open('cand.h5', 'r+b') as f:
    f.seek(at)
    f.write(b'\xff' * 40)"
vernier compare ref.h5 cand.h5 >said
echo "[$?]"
grep -E '^(verdict|unreadable)' said | sed 's/layer1.input .*/layer1.input/'

# A name that one side alone has, of what both hold under another, is compared whichever side it is.
$PYTHON -c "
import h5py, shutil
shutil.copy('ref.h5', 'plain.h5')
shutil.copy('ref.h5', 'named.h5')
for path in ('plain.h5', 'named.h5'):
    with h5py.File(path, 'r+') as f:
        del f['model'], f['plan']
        if path == 'named.h5':
            f['step.0/layer1/input'] = f['step.0/layer0/output']"
for pair in 'plain.h5 named.h5' 'named.h5 plain.h5'; do
    vernier compare $pair --points layer1.input | tail -1
done
vernier compare plain.h5 named.h5 | tail -1

# A tensor that one side lacks under both names is missing, or extra, once; under the second name
# alone it is not.
$PYTHON -c "
import h5py, shutil
shutil.copy('ref.h5', 'neither.h5')
shutil.copy('ref.h5', 'second.h5')
with h5py.File('ref.h5', 'r+') as f:
    f['step.0/layer1/input'] = f['step.0/layer0/output']
with h5py.File('neither.h5', 'r+') as f:
    del f['step.0/layer0/output']
with h5py.File('second.h5', 'r+') as f:
    f.move('step.0/layer0/output', 'step.0/layer1/input')
    del f['model'], f['plan']"
for pair in 'ref.h5 neither.h5' 'neither.h5 ref.h5' 'ref.h5 second.h5' 'second.h5 ref.h5'; do
    vernier compare $pair | grep -E '^(missing|extra|verdict)'
done
vernier compare neither.h5 ref.h5 --points layer1.input --points layer0.output | tail -1

# How many tensors it is: the recorder, show and compare count each once.
vernier capture ref "$FIXTURES/qwen2-trained" --ids "@$FIXTURES/prompts/p017.ids" --decode 3 -o counted.h5 2>&1 |
	sed 's/,.*//'
vernier show counted.h5 | grep ' second name'
vernier compare counted.h5 counted.h5 --allow itself | sed -n 's/^reference .*; /compare: /p'

# What is to be said of every step alike is said once.
vernier capture ref "$FIXTURES/qwen2-trained" --ids "@$FIXTURES/prompts/p017.ids" --decode 3 --precision f16 \
	-o f16.h5 2>/dev/null
vernier capture ref "$FIXTURES/qwen2-trained" --ids "@$FIXTURES/prompts/p017.ids" --decode 3 -o f32.h5 2>/dev/null
vernier compare f32.h5 f16.h5 --limits fp32.yaml | grep '^warning.* embed:' | sed 's/.*nmse/nmse/'
