# A run judged while it is recorded: which tensors are written, which are left out,
# and how compare judges the file.
M=$FIXTURES/qwen2-trained
PY=${PYTHON:-python3}
clean() { sed 's/, [0-9.]* [a-zA-Z]* in [0-9.]* s.*//'; }
capture() { vernier capture ref "$M" "$@" 2>&1 | clean; echo "[${PIPESTATUS[0]}]"; }
say() {
	echo "\$ vernier $*"
	vernier "$@" >said 2>&1
	s=$?
	grep -E '^(refused|vernier|verdict|warning|note|agreed|within|OUTSIDE|missing|explained)' said |
		sed 's/, digest [0-9a-f]*//; s/ nmse at most [0-9.e-]*/ nmse at most X/; s/worst nmse .*/worst nmse X/
			s/^\(OUTSIDE *[^ ]*\) .*/\1/' |
		awk '/^missing/ && ++n > 2 { more++; next } { print } END { if (more) print "... missing " more " more" }'
	echo "[$s]"
}
I="--ids @$FIXTURES/prompts/p017.ids"
capture $I -o ref.h5 >/dev/null
echo "== correct: in another precision, and to the bit"
capture $I --precision f16 --against ref.h5 -o good.h5
say compare ref.h5 good.h5
say compare ref.h5 good.h5 --strict
say compare ref.h5 good.h5 --strict --allow agreed
capture $I --against ref.h5 -o same.h5
say compare ref.h5 same.h5
say compare ref.h5 same.h5 --bitwise
say compare ref.h5 good.h5 --bitwise --points logits
vernier show good.h5 | grep -E 'complete|against|judged|left out' | sed 's/, digest .*//
s/against_digest .*/against_digest D/'
vernier show good.h5 --format json | $PY -c "
import json, sys
l = json.load(sys.stdin)['left_out']
print(len(l), l[0]['name'], sorted(l[0])), print(l[0]['measured']['nmse'] < 1e-6,
                                                 'kl_mean' in [x for x in l if x['name'] == 'logits'][0]['measured'])"
echo "== limits that are tighter than those it was judged by"
cat >tight.yaml <<'Y'
version: 1
defaults: { nmse: 1.0e-6 }
Y
say compare ref.h5 good.h5 --limits tight.yaml
capture $I --precision f16 --against ref.h5 --limits tight.yaml -o tight.h5
say compare ref.h5 tight.h5 --limits tight.yaml
echo "== as a baseline, what was left out may change, if it is no farther off"
vernier compare ref.h5 good.h5 --limits tight.yaml -o base.json -q
# METRIC VALUE: other.json, where what was left out had other numbers; nmse is multiplied,
# another metric added
rewrite() {
    $PY -c "
import json, sys
metric, value = sys.argv[1], float(sys.argv[2])
r = json.load(open('base.json'))
for c in r['checkpoints']:
    for s in c.get('sides', []):
        if s and 'left_out' in s:
            s['left_out'] = 32 * '0'
            s['measured'][metric] = s['measured'].get(metric, 1) * value
json.dump(r, open('other.json', 'w'))" "$@"
}
for by in 1 1.5 0.5; do
    rewrite nmse $by
    say compare ref.h5 good.h5 --limits tight.yaml --baseline other.json
done
rewrite kl_mean 1 # which is not measured now
vernier compare ref.h5 good.h5 --limits tight.yaml --baseline other.json | grep '^verdict'
echo "== a fault: what is outside, and its inputs"
capture $I --precision f16 --inject R1@layer1 --against ref.h5 -o bug.h5
say compare ref.h5 bug.h5
say explain ref.h5 bug.h5 --model "$M"
echo "== the same numbers as of the whole recording"
capture $I --precision f16 --inject R1@layer1 -o whole.h5 >/dev/null
for f in bug whole; do vernier compare ref.h5 $f.h5 --format json -o $f.json -q; done
$PY -c "
import json
a, b = ({c['name']: c for c in json.load(open(f + '.json'))['checkpoints']} for f in ('bug', 'whole'))
read = [n for n in a if a[n]['status'] != 'agreed']
print(len(read), 'read, all the same:',
      all(a[n]['metrics'] == b[n]['metrics'] and a[n]['status'] == b[n]['status'] for n in read))
print('all others within:', all(b[n]['status'] == 'within' for n in a if n not in read))"
echo "== stopped at the first"
capture $I --precision f16 --inject R1@layer1 --against ref.h5 --stop-at-first -o stop.h5
say explain ref.h5 stop.h5 --model "$M"
vernier show stop.h5 | grep -E 'complete|stopped'
echo "== while decoding"
capture $I --decode 4 -o steps.h5 >/dev/null
capture $I --force-ids-from steps.h5 --precision f16 --against steps.h5 -o d.h5
say compare steps.h5 d.h5
capture $I --force-ids-from steps.h5 --precision f16 --inject C5@layer1 --against steps.h5 --stop-at-first -o dstop.h5
say compare steps.h5 dstop.h5
vernier show dstop.h5 | grep -E 'complete|stopped|decode '
capture $I --force-ids 1,2,3,4 --precision f16 --against steps.h5 --stop-at-first -o other.h5
echo "== many prompts, each by its own reference; and again"
printf '%s\n' '{"name": "a", "ids": [1, 2, 3, 4, 5, 6, 7, 8]}' '{"name": "b", "ids": [9, 10, 11, 12, 13, 14]}' >p.jsonl
capture --prompts p.jsonl -o refs >/dev/null
capture --prompts p.jsonl --precision f16 --inject R1@layer1 --against refs --stop-at-first -o cands
capture --prompts p.jsonl --precision f16 --inject R1@layer1 --against refs --stop-at-first -o cands
say compare refs cands
echo "== a file that says more than it may"
$PY - <<'P'
import h5py, json, shutil
def edit(name, change, digest=True, of="good.h5"):
    import xxhash
    shutil.copy(of, name)
    with h5py.File(name, "r+") as f:
        lines = [json.loads(l) for l in f["run/left_out"][()]]
        del f["run/left_out"]
        lines = [json.dumps(l) if isinstance(l, dict) else l for l in change(lines)]
        f["run"].create_dataset("left_out", data=lines, dtype=h5py.string_dtype())
        if digest:
            f["run/left_out"].attrs["digest"] = xxhash.xxh3_128_hexdigest(b"".join(l.encode() + b"\0" for l in lines))
def each(**new):
    return lambda lines: [{**l, **new} for l in lines]
edit("others.h5", each(reference="0" * 32))
edit("none.h5", each(measured={}))
edit("worse.h5", lambda ls: [{**l, "measured": {**l["measured"], "nmse": 0.5}} for l in ls])
edit("few.h5", lambda ls: [{**l, "measured": {"nmse": 1e-9, "nonfinite": 0}} for l in ls])
edit("twice.h5", lambda ls: ls + ls[:1])
edit("word.h5", lambda ls: ["{}"])
edit("number.h5", lambda ls: [{**ls[0], "measured": {"nmse": "small"}}])
edit("recorded.h5", lambda ls: ls + [{**ls[0], "name": "layer1.q_rope"}], of="bug.h5")
shutil.copy("good.h5", "flip.h5")
with h5py.File("flip.h5", "r+") as f:
    f["run/left_out"][0] = f["run/left_out"][0].replace(b'"nmse":', b'"nmse":1')
# A reference with a NaN, and a candidate whose file says that the tensor was equal.
shutil.copy("ref.h5", "nan_ref.h5")
with h5py.File("nan_ref.h5", "r+") as f:
    d = f["step.0/layer0/mlp_norm"]
    x = d[()]
    x[3, 5] = float("nan")
    d[...] = x
    import xxhash
    word = xxhash.xxh3_128_hexdigest(x.tobytes())
    d.attrs["digest"] = word
edit("nan.h5", lambda ls: [{**l, "digest": word, "reference": word, "dtype": "f32"} if l["name"] == "layer0.mlp_norm"
                           else l for l in ls])
shutil.copy("good.h5", "stopped.h5")
with h5py.File("stopped.h5", "r+") as f:
    f["run"].attrs["stopped"] = "layer0.q_rope"
    del f["run/left_out"]
P
for f in others none worse few twice word number recorded flip stopped; do say compare ref.h5 $f.h5; done
vernier compare nan_ref.h5 nan.h5 --allow claims 2>&1 | grep -E "mlp_norm|^verdict"
echo "== of a deep model, few points: each operation after them is asked once"
vernier synth tiny --layers 24 -o deep >/dev/null 2>&1
vernier capture ref deep --ids 1,2,3,4 --points logits -o deep_ref.h5 2>/dev/null
timeout 20 "$VERNIER" capture ref deep --ids 1,2,3,4 --points logits --against deep_ref.h5 --inject 'R1@*' -o deep.h5 \
	2>&1 | grep -c 'is the first outside'
kept='--points logits --points *.k_rope --points *.v_proj' ids=$(seq -s, 1 130)
set -f
vernier capture ref deep --ids "$ids" $kept -o keys_ref.h5 2>/dev/null
vernier capture ref deep --ids "$ids" --precision f16 $kept -o keys.h5 2>/dev/null
set +f
timeout 60 "$VERNIER" compare keys_ref.h5 keys.h5 --model deep | grep '^verdict'
echo "== tensors left out: no correct run to fit limits to, and repaired for a baseline"
vernier calibrate ref.h5 good.h5 -o fitted.yaml; echo "[$?]"
vernier compare ref.h5 bug.h5 -q -o before.json
vernier compare ref.h5 good.h5 --baseline before.json | grep -c 'no longer outside:'
echo "== a run that stopped, and its own baseline: the rest is still to be run"
vernier compare ref.h5 stopped.h5 -q -o stopped.json
vernier compare ref.h5 stopped.h5 --baseline stopped.json | grep -E '^(finding|missing .*logits|[0-9]+ not run)'
echo "== JUnit: what agreed has passed, and says how"
vernier compare ref.h5 good.h5 -q -o good.xml
sed -n 's/.*<testsuites.*\( tests="[0-9]*".*\) time.*/\1/p' good.xml
grep -c '<system-out>left out: judged while it was recorded' good.xml
echo "== refused"
rm -f x.h5
for o in "--limits x" "--stop-at-first" "--against nothing.h5" "--against x.h5" "--against $M/config.json" \
	"--against ref.h5 --limits nothing.yaml"; do capture $I $o -o x.h5 2>&1 | head -3; done
vernier capture ref "$FIXTURES/gpt2-trained" $I --against ref.h5 -o x.h5; echo "[$?]"
ls x.h5* 2>&1; true
