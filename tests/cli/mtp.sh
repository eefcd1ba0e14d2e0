# A multi-token-prediction head on one side of a comparison, and what else asks for it.
PYTHONPATH=$PYTHONPATH:$TESTS/parity:$FIXTURES $PYTHON -c "
import os, parity_mtp
os.mkdir('m')
parity_mtp.published('m')"
ids="--ids @$FIXTURES/prompts/p017.ids"
record() { vernier capture ref "$@" 2>/dev/null; }
record m --mtp $ids --points '*' -o head.h5
record m $ids --points '*' -o plain.h5
record m --mtp $ids --points '*' --precision f16 -o half.h5

echo "== one side ran it: the rest is compared"
what='^verdict|head|models differ|missing|extra|not comparable|a fault in'
say_lines "$what" compare head.h5 plain.h5 --model m
say_lines "$what" compare head.h5 plain.h5 --model m --allow missing
say_lines "$what" compare plain.h5 head.h5 --model m --allow extra
record "$FIXTURES/qwen2-trained" $ids -o qwen2.h5
say_lines 'models differ' compare head.h5 qwen2.h5

echo "== layers 0 to 3 and the logits"
record m --mtp $ids --points '{layer0.*,layer1.*,layer2.*,layer3.*,logits}' --precision f16 -o part.h5
say_lines ': a fault in' compare head.h5 part.h5 --model m --allow missing
record m --mtp $ids --points '{layer0.*,layer1.*,layer2.*}' --precision f16 -o less.h5
say_lines ': a fault in' compare head.h5 less.h5 --model m --allow missing

echo "== a dump of another engine"
PYTHONPATH=$PYTHONPATH:$TESTS/parity:$FIXTURES $PYTHON -c "
import os, numpy
from parity_hf import tensors
os.mkdir('dump')
t = tensors('half.h5')
for name in 'layer3.output', 'final_norm', 'layer4.mtp_hidden', 'layer4.mtp_logits', 'logits':
    numpy.save(f'dump/{name}.npy', t[name][()])"
say import dump --model m $ids -o dump.h5
say import dump --model m --dry-run $ids
say import dump --model m --mtp $ids -o dump.h5
say import dump --mtp $ids -o dump.h5
say_lines "$what" compare head.h5 dump.h5 --model m --allow missing

echo "== limits of its scores"
printf 'version: 1\nrules:\n  - match: "*mtp_logits"\n    argmax_agreement: 0.9\n    why: ours\n' >own.yaml
say limits own.yaml --recording head.h5
say_lines 'mtp_logits|^verdict' compare head.h5 half.h5 --model m --limits own.yaml

echo "== limits by depth are those of the run without it"
printf '%s\n' 'version: 1' 'rules:' '  - match: layer1.output' '    nmse: { first: 1.0e-12, last: 1.0e-3 }' \
	'    why: ours' >depth.yaml
say_lines '^rule' compare head.h5 half.h5 --limits depth.yaml
say_lines '^rule' compare plain.h5 half.h5 --limits depth.yaml --allow extra

echo "== what is proposed, and refused"
vernier show head.h5 --format json | grep '"vernier capture'
vernier show plain.h5 --format json | grep '"vernier capture'
say points --mtp
say capture ref "$FIXTURES/qwen2-trained" --mtp --ids 1,2 -o x.h5

echo "== weights of the head"
$PYTHON -c "
import json, shutil, struct
import numpy as np
shutil.copytree('m', 'w')
with open('w/model-00002-of-00002.safetensors', 'r+b') as f:
    n = struct.unpack('<Q', f.read(8))[0]
    at = json.loads(f.read(n))['mtp.layers.0.self_attn.k_proj.weight']['data_offsets']
    f.seek(8 + n + at[0])
    old = np.frombuffer(f.read(at[1] - at[0]), 'u2').reshape(32, 32)
    f.seek(8 + n + at[0])
    f.write(old.T.tobytes())"
record w --mtp $ids -o w.h5
say weights m w
say weights head.h5 w.h5 --model m
say_lines '^refused' compare head.h5 w.h5 --model m

echo "== the last layer's output after the last norm"
record m --mtp $ids --points '*' --inject P21@layer3.output -o p21.h5
say_lines 'P21' explain head.h5 p21.h5 --model m

echo "== several calls"
for how in "" "--inject T3.lost@*"; do
	record m --mtp --ids 1,2,3 --force-ids 4,5,6,7 --points '*' $how -o "steps${how:+.lost}.h5"
done
say_lines 'T3' explain steps.h5 steps.lost.h5 --model m

echo "== cached keys that are not seen, beside the first"
steps="--ids 1,2,3,4,5,6,7,8,9,10,11,12 --force-ids 20,21,22,23"
record m --mtp $steps -o seen.h5
cp seen.h5 unseen.h5
PYTHONPATH=$PYTHONPATH:$TESTS/parity:$FIXTURES $PYTHON -c "
import editing, numpy as np
from parity_hf import tensors
of = lambda s, name: tensors('seen.h5', s)['layer4.' + name][()].astype('f8')
with editing.File('unseen.h5', 'r+') as f:
    for s in range(1, 5):
        k, v = (np.concatenate([of(i, n) for i in range(s + 1)]) for n in ('k_rope', 'v_proj'))
        q, see = of(s, 'q_rope')[0], [j for j in range(1, len(k)) if j not in (5, 6)]
        for h in range(len(q)):
            g = h * k.shape[1] // len(q)
            e = np.exp(k[see, g] @ q[h] * q.shape[1] ** -0.5)
            f[f'step.{s}/layer4/attn_context'][0, h] = e @ v[see, g] / e.sum()"
say_lines '^explained' explain seen.h5 unseen.h5 --model m
