# A tensor under two names, compressed in the reference; the candidate's second one is its own, and cannot be read.
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
grep -E '^(OUTSIDE limits|within limits|unreadable)' said | sed 's/layer1.input .*/layer1.input/'
