# evaluate --recordings: the same report from logits that were recorded, whatever calls they came
# in; and what is refused.
M=$FIXTURES/qwen2-trained
$PYTHON -c "
ids = open('$FIXTURES/prompts/text.ids').read().replace(',', ' ').split()[:200]
open('all.ids', 'w').write(','.join(ids))
for k, b in enumerate(range(0, 200, 48)):
    open(f'w{k}.ids', 'w').write(','.join(ids[b:b + 64]))
    if b + 64 >= 200: break"
mkdir ref half
record() { vernier capture ref "$M" --ids "$1" --points logits "${@:3}" -o "$2" 2>/dev/null; }
for w in w*.ids; do record @$w ref/${w%.ids}.h5; record @$w half/${w%.ids}.h5 --precision f16; done
ls ref
ev() { vernier evaluate --recordings "$@"; }
numbers() { $PYTHON -c "
import json, sys
j = json.load(open(sys.argv[1]))
for key in ('model', 'text', 'next', 'greedy', 'weights', 'window', 'unscored', 'stride'): del j[key]
for s in ('reference', 'candidate'): del j[s]['run'], j[s]['path']
first = j['argmax']['first_difference']
if first: del first['reference_text'], first['candidate_text']
print(json.dumps(j, sort_keys=True))" "$1"; }

echo "== windows of one text: the numbers of the model's own evaluation"
vernier evaluate "$M" --ids @all.ids --window 64 --stride 48 --candidate ref --precision f16 --decode 0 -o model.json
ev ref half --stride 48 -o recorded.json
cmp <(numbers model.json) <(numbers recorded.json) && echo same
ev ref half --stride 48 | sed -n 1,3p
echo "== texts of their own, more than one candidate"
ev ref half | sed -n 1p
ev ref/w0.h5 half/w0.h5 half/w0.h5 --format json | $PYTHON -c "
import json, sys
j = json.load(sys.stdin)
print(j['schema'], len(j['evaluations']), j['evaluations'][0]['next'], len(j['next']), j['next'][0]
      == j['evaluations'][0]['next'][0], {e['weights'] for e in j['evaluations']}, j['evaluations'][1]['unscored'])"

echo "== two quantisations: the report names them, and the next command allows the difference"
vernier capture ref "$FIXTURES/gguf/qwen2-trained.q8_0.gguf" --ids @w0.ids --points logits -o q8.h5 2>/dev/null
ev ref/w0.h5 q8.h5 | sed -n 2,3p
ev ref/w0.h5 q8.h5 --format json | $PYTHON -c "
import json, sys
j = json.load(sys.stdin)
print([j[s]['weights_format'] for s in ('reference', 'candidate')], *j['next'])" | tee next
eval "$(sed "s/.*] //" next)" | tail -n 1 | cut -d: -f1

echo "== token by token, and rows that were not kept"
record 5,6,7,8,9,10 once.h5
record 5,6 apart.h5 --force-ids 7,8,9,10
record 5,6,7,8 last.h5 --tokens last --force-ids 9,10
ev once.h5 apart.h5 --format json | $PYTHON -c "
import json, sys
j = json.load(sys.stdin)
print(j['scored'], j['unscored'], abs(j['gap']['loss']) < 1e-6, j['argmax']['strict'])"
ev once.h5 last.h5 | grep -E '^(text|note)'
ev once.h5 last.h5 --format json | $PYTHON -c "
import json, sys
j = json.load(sys.stdin)
print(j['tokens'], j['scored'], j['unscored'])"

echo "== the loss that a fault causes"
vernier evaluate "$M" --ids @all.ids --candidate ref --precision f32 --decode 0 --inject R1@layer1 --inject A1@layer0 \
	--format json | $PYTHON -c "
import json, sys
j = json.load(sys.stdin)
print(j['injected'], j['gap']['loss'] > 0.05, j['argmax']['strict'] < 0.9)"
vernier evaluate "$M" --ids 1,2,3 --candidate ref --inject R1@layer9; echo "[$?]"

echo "== refused"
try() { echo "\$ vernier evaluate $*"; vernier evaluate "$@" </dev/null 2>&1 | head -n 1; echo "[${PIPESTATUS[0]}]"; }
try --recordings ref
try --recordings ref half --stride 40
try --recordings ref half --decode 4
try --recordings ref half --candidate ref
try --recordings ref half/w0.h5
try "$M" --recordings ref/w0.h5 half/w0.h5
try --recordings once.h5 once.h5
try --recordings once.h5 ref/w0.h5
try --recordings ref/w0.h5 nowhere.h5
try --recordings once.h5 apart.h5 --format text -o once.h5 --force
rm half/w2.h5
try --recordings ref half
vernier capture ref "$M" --ids 5,6,7,8,9,10 --points embed -o embed.h5 2>/dev/null
try --recordings once.h5 embed.h5
cp once.h5 flipped.h5
$PYTHON -c "
import editing as h5py
with h5py.File('flipped.h5', 'r') as f: at = f['step.0/logits'].id.get_offset()
b = bytearray(open('flipped.h5', 'rb').read()); b[at + 401] ^= 4; open('flipped.h5', 'wb').write(b)"
try --recordings once.h5 flipped.h5
