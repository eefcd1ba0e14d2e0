# No worse than before: errors that the baseline has too do not fail; all others do.
M=$FIXTURES/qwen2-trained
run() { vernier capture ref "$M" --ids @$FIXTURES/prompts/${3:-p070}.ids -o $1.h5 --precision $2 2>/dev/null; }
run ref f32 && run half f16 && run other f16-acc16 && run ref17 f32 p017 && run half17 f16 p017
damage() { cp $1.h5 $2.h5; $PYTHON -c "
import editing as h5py, numpy as np, sys
d = h5py.File(sys.argv[1], 'r+')['step.0']
def change(name, by):
    x = d[name.replace('.', '/')][()].astype(np.float64)
    d[name.replace('.', '/')][...] = by(x)
def channel(name, factor):
    def by(x):
        x[:, 1, 3] *= factor
        return x
    change(name, by)
exec(sys.argv[2])" $2.h5 "$3"; }
say() { echo "\$ compare $*"; vernier compare "$@" >said 2>&1; s=$?
	sed -nE '/^(vernier compare|refused|known|better|worse|OUTSIDE|missing|no longer)/p; /^(base|chain)[a-z]*.json:/p' \
		said; tail -n 1 said | grep -v '^vernier compare' | sed 's/^/  /'; echo "[$s]"; }
damage half was 'channel("layer0.v_proj", 1.5)'
vernier compare ref.h5 was.h5 -q -o base.json; echo "[$?]"

echo "== as before, better, mended"
say ref.h5 was.h5 --baseline base.json
damage half now 'channel("layer0.v_proj", 1.4)' && say ref.h5 now.h5 --baseline base.json
say ref.h5 half.h5 --baseline base.json
sed s,vernier-compare/3,vernier-compare/2, base.json >base1.json && say ref.h5 was.h5 --baseline base1.json
echo "== within the room of 1 %, and beyond it"
damage half now 'channel("layer0.v_proj", 1.501)' && say ref.h5 now.h5 --baseline base.json
damage half now 'channel("layer0.v_proj", 1.51)' && say ref.h5 now.h5 --baseline base.json
echo "== something else"
damage was now 'change("layer1.mlp_act", lambda x: x * 1.2)' && say ref.h5 now.h5 --baseline base.json
damage was now 'change("layer1.attn_out", lambda x: x * 1.2)' && say ref.h5 now.h5 --baseline base.json
damage was now 'd["layer0/v_proj"][2, 0, 0] = np.nan' && say ref.h5 now.h5 --baseline base.json
damage was now 'del d["layer0/v_proj"]' && say ref.h5 now.h5 --baseline base.json
damage was now 'del d["layer1/q_proj"]' && say ref.h5 now.h5 --baseline base.json
echo "== missing before and now, and back again"
vernier compare ref.h5 now.h5 -q -o basegone.json; echo "[$?]"
say ref.h5 now.h5 --baseline basegone.json
say ref.h5 was.h5 --baseline basegone.json
damage ref less 'del d["layer1/q_proj"]' && say less.h5 now.h5 --baseline basegone.json
echo "== misshapen as before, and otherwise, whatever the sentence about it; without \`sides\` it is worse"
damage ref now 'd["layer1/q_proj"].attrs["axes"] = "token dim head"'
vernier compare ref.h5 now.h5 -q -o bent.json; echo "[$?]"
say ref.h5 now.h5 --baseline bent.json
rewrite() { $PYTHON -c "
import json, sys
r = json.load(open(sys.argv[1]))
for c in r['checkpoints']:
    exec(sys.argv[2])
json.dump(r, sys.stdout)" $1 "$2"; }
rewrite bent.json 'c["detail"] = "other words"' >reworded.json && say ref.h5 now.h5 --baseline reworded.json
rewrite bent.json 'c.pop("sides", 0)' >old.json && say ref.h5 now.h5 --baseline old.json
damage ref now 'd["layer1/q_proj"].attrs["axes"] = "head token dim"' && say ref.h5 now.h5 --baseline bent.json
echo "== a report against a baseline is a baseline"
vernier compare ref.h5 was.h5 --baseline base.json -q -o chain.json
say ref.h5 was.h5 --baseline chain.json
damage half now 'channel("layer0.v_proj", 1.6)' && say ref.h5 now.h5 --baseline chain.json

echo "== a baseline of something else"
say ref17.h5 half17.h5 --baseline base.json
say ref.h5 other.h5 --baseline base.json
say ref.h5 was.h5 --baseline base.json --limits bf16.yaml
say ref.h5 was.h5 --baseline base.json --floor half.h5
say ref.h5 was.h5 --baseline base.json --points 'layer0.*'
say ref.h5 was.h5 --baseline base.json --bitwise
$PYTHON "$TESTS/support/damage.py" "$M" scaled scaled
vernier capture ref scaled --ids @$FIXTURES/prompts/p070.ids -o scaled.h5 2>/dev/null
say scaled.h5 was.h5 --baseline base.json --allow weights
echo "== files that are not a baseline"
: >empty.json && say ref.h5 was.h5 --baseline empty.json
try() { say ref.h5 was.h5 --baseline "$1"; }
try nowhere.json
mkdir folder && try folder
head -c 3000 base.json >cut.json && try cut.json
echo '{"schema": "vernier-evaluate/1"}' >x.json && try x.json
for text in '[]' 3 null text; do echo $text >x.json && try x.json; done
bend() { $PYTHON -c "
import json, sys
r = json.load(open('base.json'))
exec(sys.argv[1])
json.dump(r, open('x.json', 'w'))" "$1"; try x.json; }
bend 'del r["subject"]'
bend 'r["subject"] = {}'
bend 'r["checkpoints"].append(r["checkpoints"][0])'
bend 'r["checkpoints"][3]["fails"] = 0'
bend 'r["checkpoints"][3]["limits"] = {}'
bend 'r["checkpoints"] = []'
bend '[c.update(limits=[1, None, {"metric": 3}]) for c in r["checkpoints"]]'
bend '[l.update(value="low", value_is=7) for c in r["checkpoints"] for l in c["limits"]]'

echo "== in the other reports"
damage was now 'channel("layer0.v_proj", 0.95); change("logits", lambda x: x * 1.3)'
vernier compare ref.h5 now.h5 --baseline base.json -q -o now.json -o now.xml -o now.md -o now.html; echo "[$?]"
$PYTHON -c "
import json, xml.etree.ElementTree as E
r = json.load(open('now.json'))
print(r['verdict'], r['first_divergence'], r['origins'], r['baseline'])
print([(c['name'], c['status'], c['fails'], c['since'], 'was' in c) for c in r['checkpoints'] if 'since' in c])
t = E.parse('now.xml').getroot()
print(t.attrib, [(c.get('name'), c[0].tag, c[0].get('message').split(':')[0]) for c in t.iter('testcase')
      if len(c) and c.get('classname') != 'criteria'])
print([l for l in open('now.md') if 'Baseline' in l or 'Better' in l][0].split(':')[0],
      'WORSE than the baseline' in open('now.html').read())"
vernier compare ref.h5 was.h5 --baseline base.json -q -o known.json
$PYTHON -c "
import json
r = json.load(open('known.json'))
print(r['verdict'], r['first_divergence'], r['summary'])"
echo "== an origin that the baseline knows is none, and one that is worse is"
vernier compare ref.h5 was.h5 --model "$M" -q -o replayed.json 2>/dev/null
damage half now 'channel("layer0.v_proj", 1.6)'
for cand in was now; do
	vernier compare ref.h5 $cand.h5 --model "$M" --baseline replayed.json -q -o replayed-$cand.json 2>/dev/null
	echo "[$?]"
	$PYTHON -c "
import json
was, r = json.load(open('replayed.json')), json.load(open('replayed-$cand.json'))
print(was['origins'], r['verdict'], r['origins'], [p['name'] for p in r['checkpoints'] if p['origin']])"
done
echo "== steps that are judged together, whichever is charged"
vernier capture ref "$M" --ids @$FIXTURES/prompts/p017.ids --decode 12 -o deep.h5 2>/dev/null
vernier show deep.h5 --format json |
	$PYTHON -c "import json, sys; print(*json.load(sys.stdin)['token_ids'][17:], sep=',')" >decoded.ids
vernier capture ref "$M" --ids @$FIXTURES/prompts/p017.ids --force-ids @decoded.ids --precision f16 \
	-o deep-half.h5 2>/dev/null
steps() { cp deep-half.h5 $1.h5; $PYTHON -c "
import editing as h5py, sys
f = h5py.File(sys.argv[1], 'r+')
for n in range(1, 13):
    f['step.%d/layer1/v_proj' % n][...] *= float(sys.argv[3]) if n == int(sys.argv[2]) else 1.05" $1.h5 $2 $3; }
steps was 3 1.08
vernier compare deep.h5 was.h5 --floor deep-half.h5 -q -o basedeep.json; echo "[$?]"
steps now 5 1.06 && say deep.h5 now.h5 --floor deep-half.h5 --baseline basedeep.json
steps now 5 1.5 && say deep.h5 now.h5 --floor deep-half.h5 --baseline basedeep.json
echo "== a chain of reports, each a little worse, does not walk away"
damage half was 'channel("layer0.v_proj", 0.5)'
vernier compare ref.h5 was.h5 -q -o link0.json
for i in 1 2 3 4 5 6; do
	damage half now "channel('layer0.v_proj', 1 - 0.5 * (1 + 0.002 * $i))"
	vernier compare ref.h5 now.h5 --baseline link$((i - 1)).json -q -o link$i.json; echo "link $i [$?]"
done
$PYTHON -c "
import json
for i in range(7):
    print(*[sorted(k for k in l if k == 'best') for c in json.load(open('link%d.json' % i))['checkpoints']
            for l in c['limits'] if not l['holds'] and l['metric'] == 'nmse'])"
