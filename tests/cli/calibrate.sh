# Limits fitted to correct runs: correct runs pass them, faults do not, and a run that is not
# correct is refused.
M=$FIXTURES/qwen2-trained
run() { vernier capture ref "$M" --ids @$FIXTURES/prompts/$1.ids -o $2.h5 "${@:3}" 2>/dev/null; }
for p in p017 p070; do run $p ref-$p; run $p half-$p --precision f16; run $p other-$p --precision f16-acc16; done
run p200 ref-p200
run p200 half-p200 --precision f16
verdict() { vernier compare "$@" >said 2>&1; s=$?; echo "[$s] $(tail -n 1 said)"; }
correct() { echo "warnings: $(vernier limits $1 --recording ref-p070.h5 --dtype f16 | grep -c warning)"
	for p in p017 p070 p200; do verdict ref-$p.h5 half-$p.h5 --limits $1 "${@:2}"; done; }
fault() { cp half-p070.h5 bad.h5; $PYTHON -c "
import editing as h5py, numpy as np, sys
d = h5py.File('bad.h5', 'r+')['step.0/' + sys.argv[1].replace('.', '/')]
x = d[()].astype(np.float64)
exec(sys.argv[2])
d[...] = x" "$1" "$2"; shift 2; verdict ref-p070.h5 bad.h5 "$@"; }

echo "== plain limits of three pairs"
vernier calibrate ref-p017.h5 half-p017.h5 --ref ref-p070.h5 half-p070.h5 --ref ref-p200.h5 half-p200.h5 -o plain.yaml \
	--name plain
correct plain.yaml
echo "== the worst that was seen, times the margin"
for p in p017 p070 p200; do vernier compare ref-$p.h5 half-$p.h5 -q -o $p.json; done
vernier limits plain.yaml --recording ref-p070.h5 --format json >limits.json
$PYTHON -c "
import json
limits = {c['name']: {l['metric']: l['limit'] for l in c['limits']}
          for c in json.load(open('limits.json'))['checkpoints']}
seen, bad, tight = {}, 0, 0
for p in ('p017', 'p070', 'p200'):
    for c in json.load(open(p + '.json'))['checkpoints']:
        for m in ('nmse', 'worst_token_nmse', 'kl_mean'):
            if m in c['metrics']:
                seen[c['name'], m] = max(seen.get((c['name'], m), 0), c['metrics'][m])
by_point = {}
for (name, m), x in seen.items():
    by_point.setdefault((name.split('.')[-1], m), []).append((limits[name][m], x))
for xs in by_point.values():
    bad += any(l < 2 * x for l, x in xs)
    tight += min(l / x for l, x in xs) <= 2.25
print(len(by_point), 'points and metrics;', bad, 'below twice the worst;', tight, 'at most 2.25 times it somewhere')
"
echo "== faults of a known size"
fault layer1.q_rope 'x *= 1.01' --limits plain.yaml
fault layer0.v_proj 'x[:, 1, 3] *= 1.05' --limits plain.yaml
fault layer1.output 'x[7] *= 1.02' --limits plain.yaml
fault logits 'x = x + np.random.default_rng(1).normal(size=x.shape) * 0.03' --limits plain.yaml
fault embed 'x = np.trunc(x * 2**9) / 2**9' --limits plain.yaml

echo "== multiples of the floor, of two candidates of one reference"
run p017 floor-p017 --precision f16
run p070 floor-p070 --precision f16
vernier calibrate ref-p070.h5 half-p070.h5 other-p070.h5 --floor floor-p070.h5 --allow precision --margin 4 \
	-o floor.yaml
grep -c _over_floor: floor.yaml
correct floor.yaml --model "$M"
verdict ref-p017.h5 other-p017.h5 --limits floor.yaml --floor floor-p017.h5 --allow precision
fault layer1.q_rope 'x *= 1.01' --limits floor.yaml --model "$M"
fault layer1.q_rope 'x *= 1.01' --limits floor.yaml
echo "== decoded, step by step"
vernier capture ref "$M" --ids @$FIXTURES/prompts/p017.ids --decode 12 -o deep.h5 2>/dev/null
vernier show deep.h5 --format json |
	$PYTHON -c "import json, sys; print(*json.load(sys.stdin)['token_ids'][17:], sep=',')" >decoded.ids
run p017 deep-half --force-ids @decoded.ids --precision f16
vernier calibrate deep.h5 deep-half.h5 --model "$M" -o deep.yaml 2>/dev/null
verdict deep.h5 deep-half.h5 --limits deep.yaml --model "$M"
verdict deep.h5 deep-half.h5 --limits deep.yaml

echo "== runs that are not correct"
say() { echo "\$ calibrate $*"; vernier calibrate "$@" 2>&1 | sed -n 1,2p; echo "[${PIPESTATUS[0]}]"; }
cp half-p070.h5 bad.h5; $PYTHON -c "
import editing as h5py
h5py.File('bad.h5', 'r+')['step.0/layer1/q_rope'][3, 2, 1] = float('nan')"
say ref-p070.h5 half-p070.h5 bad.h5 -o new.yaml
$PYTHON -c "
import editing as h5py
d = h5py.File('bad.h5', 'r+')
d['step.0/layer1/q_rope'][...] = 0"
say ref-p070.h5 bad.h5 -o new.yaml
$PYTHON -c "
import editing as h5py
d = h5py.File('bad.h5', 'r+')
del d['step.0/layer1/q_rope']"
say ref-p070.h5 bad.h5 -o new.yaml
say ref-p070.h5 half-p017.h5 -o new.yaml
say ref-p070.h5 ref-p070.h5 -o new.yaml
run p070 planted --inject R1@layer1
say ref-p070.h5 planted.h5 -o new.yaml
say planted.h5 half-p070.h5 -o new.yaml
echo "== bad usage"
say ref-p070.h5 half-p070.h5 -o plain.yaml
say ref-p070.h5 half-p070.h5 -o half-p070.h5 --force
say ref-p070.h5 half-p070.h5
say ref-p070.h5 -o new.yaml
say ref-p070.h5 half-p070.h5 --ref ref-p017.h5 -o new.yaml
say ref-p070.h5 half-p070.h5 --floor floor-p070.h5 --ref ref-p017.h5 half-p017.h5 -o new.yaml
say ref-p070.h5 half-p070.h5 --margin 0.5 -o new.yaml
ls new.yaml 2>&1
echo "== names that are no checkpoints"
$PYTHON -c "
import editing as h5py, shutil
for f in ('ref', 'half'):
    shutil.copy(f + '-p017.h5', f + '-\"x.h5')
    d = h5py.File(f + '-\"x.h5', 'r+')
    del d['plan']
    d['step.0'].move('layer1/q_rope', 'layer1/a{\"*\\\\\u00e9')
"
vernier calibrate 'ref-"x.h5' 'half-"x.h5' -o strange.yaml
grep -A 6 'match: "layer\*.a?' strange.yaml | grep -A 6 -F '.a?' | sed -E 's/[0-9.]+e-[0-9]+|-?[0-9]\.[0-9]+/N/g'
verdict 'ref-"x.h5' 'half-"x.h5' --limits strange.yaml
