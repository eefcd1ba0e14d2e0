# Weights first: the refusal is a table, with --allow it stands before the checkpoints,
# and vernier weights shows it alone.
M=$FIXTURES/qwen2-trained
q() { "$@" 2>/dev/null; }
$PYTHON -c "
import json, os, shutil, sys
import numpy as np
shutil.copytree(sys.argv[1], 'changed')
b = open('changed/model.safetensors', 'rb').read()
n = 8 + int.from_bytes(b[:8], 'little')
h, data = json.loads(b[8:n]), bytearray(b[n:])
def at(name):
    return slice(*h[name]['data_offsets'])
def put(name, f):
    x = np.frombuffer(bytes(data[at(name)]), '<f4').reshape(h[name]['shape'])
    data[at(name)] = np.ascontiguousarray(f(x)).astype('<f4').tobytes()
for l in 0, 1:
    p = f'model.layers.{l}.'
    put(p + 'self_attn.q_proj.weight', np.transpose)
    g, u = p + 'mlp.gate_proj.weight', p + 'mlp.up_proj.weight'
    h[g]['data_offsets'], h[u]['data_offsets'] = h[u]['data_offsets'], h[g]['data_offsets']
put('model.layers.1.self_attn.o_proj.weight', lambda x: 0 * x)
put('model.norm.weight', lambda x: x * np.float32(1.5))
t = json.dumps(h).encode()
open('changed/model.safetensors', 'wb').write(len(t).to_bytes(8, 'little') + t + data)" "$M"
q vernier capture ref "$M" --ids @"$FIXTURES/prompts/p017.ids" -o ref.h5
q vernier capture ref changed --ids @"$FIXTURES/prompts/p017.ids" -o cand.h5
run() { echo "\$ vernier $*"; vernier "$@"; echo "[$?]"; }
run weights "$M" "$M"
run weights "$M" changed
run weights ref.h5 cand.h5
run weights ref.h5 cand.h5 --model "$M"
run weights ref.h5 cand.h5 --model changed
run weights changed ref.h5

echo "== compare"
run compare ref.h5 cand.h5
run compare ref.h5 cand.h5 --model "$M" 2>&1
vernier compare ref.h5 cand.h5 --allow weights --model "$M" -o r.txt -o r.json -o r.md -o r.html >/dev/null
echo "[$?]"
sed -n '/^weights/,/^floor/p' r.txt
grep -A7 'Weights' r.md
sed -n '/<dt>weights/,/<.table>/p' r.html
$PYTHON -c "
import json
r = json.load(open('r.json'))
w = r['weights']
print([w[k] for k in ('reference', 'candidate', 'same', 'rounded', 'differ')],
      [n for n in r['notes'] if 'weights' in n])
for g in w['groups']:
    print(g['which'], g['kind'], g['id'], g['certain'], g['evidence'], [x['name'] for x in g['weights']])
print(sorted(w['groups'][0]['weights'][0]['reference']))"
echo "== nothing to say"
vernier compare ref.h5 ref.h5 --allow itself | grep ^weights
G=$FIXTURES/gguf/qwen2-trained.f16.gguf
q vernier capture ref "$G" --ids @"$FIXTURES/prompts/p017.ids" -o gguf.h5
vernier compare ref.h5 gguf.h5 --model "$M" | grep -E '^(weights|note .*rounded|verdict)'
q vernier capture ref "$G" --ids @"$FIXTURES/prompts/p017.ids" --inject N1@layer1 -o wrong.h5
vernier compare ref.h5 wrong.h5 --model "$M" | grep ^verdict

echo "== trouble"
$PYTHON -c "
import editing as h5py, shutil, numpy as np
shutil.copy('ref.h5', 'none.h5')
f = h5py.File('none.h5', 'r+')
del f['model/weights']
shutil.copy('ref.h5', 'odd.h5')
f = h5py.File('odd.h5', 'r+')
w = f['model/weights'][()]
w[0]['name'] = b'a\x1b[31m<b>|\`'
w[1]['rms'] = w[1]['mean'] = np.nan
w[3]['min'] = w[3]['max'] = np.inf
w[2]['digest'] = b'0' * 32
f['model/weights'][...] = w
open('text', 'w').write('no model')"
run weights ref.h5 2>&1
run weights ref.h5 none.h5 2>&1
run weights ref.h5 text 2>&1
run weights ref.h5 nowhere 2>&1
run weights ref.h5 cand.h5 --model "$FIXTURES/llama-trained" 2>&1
run weights ref.h5 cand.h5 --format html 2>&1
run weights ref.h5 odd.h5
vernier compare ref.h5 odd.h5 --allow weights --format markdown | grep -A8 Weights
vernier compare ref.h5 odd.h5 --allow weights --format html | grep -c '<td><code>.*<b>'
echo "== names of any length; they differ in one of 135 bytes"
$PYTHON -c "
import json, os, struct, sys
src = sys.argv[1]
b = open(src + '/model.safetensors', 'rb').read()
n = int.from_bytes(b[:8], 'little')
header, data = json.loads(b[8:8 + n]), b[8 + n:]
place = [len(data), len(data) + 64]
for value in 1.0, 2.0:
    to = f'long{value:.0f}'
    os.mkdir(to)
    os.symlink(src + '/config.json', to + '/config.json')
    h = json.dumps({**header, 'model.lora_' + 'x' * 124: {'dtype': 'F32', 'shape': [4, 4], 'data_offsets': place}})
    h = h.encode() + b' ' * (-len(h) % 8)
    with open(to + '/model.safetensors', 'wb') as f:
        f.write(struct.pack('<Q', len(h)) + h + data + struct.pack('<16f', *[value] * 16))
" "$M"
vernier weights long1 long1 --strict 2>&1; echo "[$?]"
vernier weights long1 long2 --strict 2>&1; echo "[$?]"
