# Verdicts and contracts: within, outside, and what is not comparable at all.
M=$FIXTURES/qwen2-trained
ids=@$FIXTURES/prompts/p070.ids
q() { "$@" 2>/dev/null; }
q vernier capture ref "$M" --ids "$ids" -o ref.h5
q vernier capture ref "$M" --ids "$ids" -o half.h5 --precision f16
say() { say_lines '^(refused|warning|verdict|vernier compare|first divergence|note)' compare "$@" |
	sed -E 's/digest is [0-9a-f]+, the file records [0-9a-f]+/digest differs/'; }
say ref.h5 ref.h5 --allow itself
say ref.h5 half.h5
say ref.h5 half.h5 --model "$M"
cp half.h5 floor.h5
say ref.h5 half.h5 --floor floor.h5

echo "== each precision has limits of its own"
for p in f16 f16-acc16 bf16 f32; do
	q vernier capture ref "$M" --ids "$ids" -o p.h5 --precision $p --force
	vernier compare ref.h5 p.h5 --model "$M" >said 2>&1
	echo "$p [$?] $(grep -oE 'limits +.*' said | sed -E 's|.*/||')" "$(tail -n 1 said)"
done
rm -f p.h5 said

echo "== other tokens, other weights, other config"
q vernier capture ref "$M" --ids 1,2,3 -o other.h5
say ref.h5 other.h5
$PYTHON "$TESTS/support/damage.py" "$M" scaled scaled
q vernier capture ref scaled --ids "$ids" -o scaled.h5
say ref.h5 scaled.h5
say ref.h5 scaled.h5 --allow weights
say ref.h5 scaled.h5 --allow everything

echo "== a tensor that denies its own plan"
cp ref.h5 denies.h5
$PYTHON -c "
import editing as h5py
f = h5py.File('denies.h5', 'r+')['step.0']
f['layer1/mlp_norm'].attrs['op'] = 'layer_norm'
f['layer0/output'].attrs['layer'] = 1"
say ref.h5 denies.h5
say ref.h5 denies.h5 --allow claims

echo "== missing and extra checkpoints fail closed"
q vernier capture ref "$M" --ids "$ids" -o some.h5 --points 'layer0.*'
say ref.h5 some.h5
say some.h5 ref.h5
say ref.h5 some.h5 --points 'layer0.*'
q vernier capture ref "$M" --ids "$ids" -o last.h5 --points logits
say some.h5 last.h5 --allow missing,extra

echo "== a floor of another model, or of other positions, is none"
cp -r "$M" other_theta && sed -i 's/"rope_theta": [0-9.]*/"rope_theta": 500/' other_theta/config.json
say ref.h5 half.h5 --model other_theta
cp -r scaled narrow && $PYTHON -c "
import json, numpy as np
b = open('narrow/model.safetensors', 'rb').read()
n = 8 + int.from_bytes(b[:8], 'little')
h = json.loads(b[8:n])
h.pop('__metadata__', None)
at, data = 0, b''
for t in sorted(h.values(), key=lambda t: t['data_offsets']):
    x = np.frombuffer(b[n + t['data_offsets'][0]:n + t['data_offsets'][1]], {'F32': '<f4', 'F16': '<f2'}[t['dtype']])
    data += x.astype('<f4').tobytes() if t['dtype'] == 'F16' else x.astype('<f2').tobytes()
    t['dtype'] = 'F32' if t['dtype'] == 'F16' else 'F16'
    t['data_offsets'] = [at, len(data)]
    at = len(data)
h = json.dumps(h).encode()
open('narrow/model.safetensors', 'wb').write(len(h).to_bytes(8, 'little') + h + data)"
say ref.h5 half.h5 --model narrow
for f in ref half; do $PYTHON -c "
import editing as h5py, shutil, sys
shutil.copy(sys.argv[1] + '.h5', 'late-' + sys.argv[1] + '.h5')
p = h5py.File('late-' + sys.argv[1] + '.h5', 'r+')['run/positions']
del p.attrs['digest']
p[...] += 100" $f; done
say late-ref.h5 late-half.h5 --model "$M"
q vernier capture ref "$M" --ids "$ids" -o few.h5 --points logits --tokens 3-7
q vernier capture ref "$M" --ids "$ids" -o few-half.h5 --points logits --tokens 3-7 --precision f16
q vernier capture ref "$M" --ids "$ids" -o others.h5 --points logits --tokens 8-12 --precision f16
cp few-half.h5 few-floor.h5
say few.h5 few-half.h5 --floor few-floor.h5
say few.h5 few-half.h5 --floor others.h5

echo "== faults put into one tensor of the candidate"
fault() { cp half.h5 bad.h5; $PYTHON -c "
import editing as h5py, numpy as np, sys
d = h5py.File('bad.h5', 'r+')['step.0/' + sys.argv[1].replace('.', '/')]
x = d[()].astype(np.float32)
exec(sys.argv[2])
d[...] = x" "$1" "$2"; say ref.h5 bad.h5 --floor half.h5; }
fault layer0.v_proj 'x[:, 1, 3] *= 1.5'
fault layer1.q_rope 'x[5:] = x[5:, ::-1]'
fault layer1.mlp_act 'x[3, 7] = np.nan'
fault logits 'x[:] = np.roll(x, 1, axis=0)'

echo "== a token of enormous size hides no other"
first=$(cut -d, -f1 "$FIXTURES/prompts/p070.ids" | head -n 1)
$PYTHON "$TESTS/support/damage.py" "$M" massive massive "$first"
ids=$first,$(seq -s, 3 60 | sed "s/\b$first\b/61/")
q vernier capture ref massive --ids "$ids" -o big.h5
q vernier capture ref massive --ids "$ids" -o big-half.h5 --precision f16
q vernier capture ref massive --ids "$ids" -o big-again.h5
say big.h5 big-half.h5
cp big-half.h5 big-floor.h5
say big.h5 big-half.h5 --floor big-floor.h5
grown() { cp "$1" bad.h5; $PYTHON -c "
import editing as h5py, numpy as np, sys
d = h5py.File('bad.h5', 'r+')['step.0/' + sys.argv[1].replace('.', '/')]
x = d[()].astype(np.float64)
x[1:] *= float(sys.argv[2])
d[...] = x" "$2" "$3"; shift 3; say big.h5 bad.h5 "$@"; }
grown big-half.h5 layer1.output 1.1
grown big-half.h5 layer1.output 1.01 --model massive
grown big-half.h5 layer0.attn_residual 1.01 --model massive
grown big-again.h5 layer0.attn_residual 1.002

echo "== reports are not overwritten"
vernier compare ref.h5 half.h5 --format json -o report.json
echo "[$?]"
$PYTHON -c "
import json
r = json.load(open('report.json'))
print(r['schema'], r['verdict'], r['first_divergence'], r['origins'], len(r['checkpoints']))
c = r['checkpoints'][-1]
print(sorted(c)[:0] or c['name'], c['status'], sorted(c['limits'][0]), sorted(c['limits'][0]['rule']))"
say ref.h5 half.h5 --format json -o report.json
say ref.h5 half.h5 --format text -o ref.h5 --force
mkdir folder && mkfifo pipe && ln -s report.json link
for to in folder pipe link nowhere/report.json; do say ref.h5 half.h5 --format json -o $to --force; done
ls -F folder pipe link report.json

echo "== what another program wrote does not steer the terminal"
$PYTHON -c "
import editing as h5py, shutil
shutil.copy('half.h5', 'a\x1b[31m.h5')
h5py.File('a\x1b[31m.h5', 'r+')['step.0/logits'].attrs['axes'] = 'token \x1b[2J'"
vernier compare ref.h5 $'a\033[31m.h5' | grep -E '^(candidate|misshapen)'
