# Numbers that do not match the digest of their file: refused, allowed by name, counted.
M=$FIXTURES/qwen2-trained
for p in f32 f16; do
	vernier capture ref "$M" --ids "@$FIXTURES/prompts/p017.ids" \
		--points '{embed,layer1.{q_proj,attn_out,output},logits}' --precision $p -o $p.h5 2>/dev/null
done
say() { say_lines '^(refused|vernier compare|verdict|warning)' compare "$@"; }
flip() { cp "$1" "$2"; "${PYTHON:-python3}" -c "import editing; editing.flip('$2', '$3')"; }
echo "== whole"
say f32.h5 f16.h5
echo "== the last bit of one number, in the candidate, the reference, the floor"
flip f16.h5 bad.h5 step.0/layer1/attn_out
flip f32.h5 bad-ref.h5 step.0/layer1/attn_out
say f32.h5 bad.h5
say bad-ref.h5 f16.h5 --model "$M"
say f32.h5 f16.h5 --floor bad.h5
say f32.h5 bad.h5 --bitwise --points layer1.attn_out
echo "== also where it is only looked at for its precision"
say f32.h5 bad.h5 --points 'layer1.output' --allow missing
echo "== allowed, and told in every report"
say f32.h5 bad.h5 --allow digest
vernier compare f32.h5 bad.h5 --allow digest -o r.json -o r.md -o r.xml -o r.html
for r in json md xml html; do
	echo "$r: $(grep -c 'does not match' r.$r) $(grep -c 'do not match its digest' r.$r)"
done
"${PYTHON:-python3}" -c "import json; print(json.load(open('r.json'))['digests'])"
echo "== without digests"
cp f16.h5 none.h5
"${PYTHON:-python3}" -c "
import h5py
f = h5py.File('none.h5', 'r+')
for name in ('embed', 'logits'): del f['step.0/' + name].attrs['digest']
h5py.File('bad.h5', 'r+')['step.0/logits'].attrs['digest'] = ''"
say f32.h5 none.h5
echo "== a malformed digest, a digest that was changed"
say f32.h5 bad.h5
cp f32.h5 lie.h5; "${PYTHON:-python3}" -c "
import h5py
f = h5py.File('lie.h5',
              'r+')['step.0/logits']
d = f.attrs['digest']
f.attrs['digest'] = d[:-1] + ('1' if d[-1] == '0' else '0')"
say lie.h5 f16.h5 --points logits
echo "== the lists of /run and the table of weights"
flip f16.h5 ids.h5 run/positions
flip f16.h5 table.h5 model/weights
say f32.h5 ids.h5
say f32.h5 table.h5 --allow digest
echo "== of a tensor without elements"
cp f32.h5 empty.h5; "${PYTHON:-python3}" -c "
import h5py, numpy as np
f = h5py.File('empty.h5', 'r+')
old = f['step.0/layer1/output']
kept = dict(old.attrs)
del f['step.0/layer1/output']
new = f['step.0/layer1'].create_dataset('output', data=np.zeros((0, 48), '<f4'))
for k, v in kept.items():
    if k in ('point', 'op', 'basis', 'axes', 'order', 'layer'): new.attrs[k] = v
new.attrs['digest'] = '0' * 32"
vernier show empty.h5 --check 2>&1 | grep -E 'DAMAGED|digests'
say f32.h5 empty.h5 --allow missing
echo "== statistics that are not of the numbers"
cp f32.h5 stats.h5; "${PYTHON:-python3}" -c "
import h5py
f = h5py.File('stats.h5', 'r+')
f['step.0/logits'].attrs['max'] = 1e-30"
vernier show stats.h5 --check 2>&1 | grep -E 'BROKEN|digests'; echo "[${PIPESTATUS[0]}]"
echo "== in a vote"
vote() { vernier compare --vote "$@" >said 2>&1; s=$?; grep -E 'majority:|digest' said; echo "[$s]"; }
cp f16.h5 third.h5
vote f32.h5 f16.h5 third.h5
flip f16.h5 worse.h5 step.0/layer1/attn_out
vote f32.h5 f16.h5 none.h5
vote f32.h5 f16.h5 worse.h5 --allow digest
