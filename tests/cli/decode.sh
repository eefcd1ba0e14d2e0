# Decoding: the tokens fed, the tensors recorded; neither threads nor recording change a token.
M=$FIXTURES/qwen2-trained
P=@$FIXTURES/prompts/p017.ids
ids() { $PYTHON -c "
import h5py, sys
print(*h5py.File(sys.argv[1])['run/token_ids'][17:])" "$1"; }
digests() { $PYTHON -c "
import h5py, sys
f = h5py.File(sys.argv[1])
def visit(name, d):
    if isinstance(d, h5py.Dataset) and name.startswith('step.'): print(name, d.attrs['digest'])
f.visititems(visit)" "$1" | sort; }
ref() { vernier capture ref "$M" --ids "$P" --force "$@" 2>err || cat err; }
same() {
	[ "$(digests a.h5)" = "$(digests b.h5)" ] && [ "$(ids a.h5)" = "$(ids b.h5)" ] && echo "the same: $1" ||
		echo "OTHER: $1"
}

echo "== the same seed, the same tokens; for any number of threads; whatever is recorded"
for t in 0 0.7 1.5; do
	ref -o a.h5 --decode 20 --temperature $t --seed 11 --threads 1
	ref -o b.h5 --decode 20 --temperature $t --seed 11 --threads 1
	same "temperature $t, two runs"
	ref -o b.h5 --decode 20 --temperature $t --seed 11 --threads 2
	same "temperature $t, 1 thread and 2"
	ids a.h5 >ids
	ref -o b.h5 --decode 20 --temperature $t --seed 11 --points 'layer0.q_rope' --tokens 2-4
	[ "$(ids b.h5)" = "$(cat ids)" ] && echo "the same tokens when the scores are not recorded"
	ref -o b.h5 --decode 20 --temperature $t --seed 12
	[ "$(ids b.h5)" = "$(cat ids)" ] && echo "another seed: the same" || echo "another seed: others"
done

echo "== what was chosen, forced: the same numbers"
ref -o a.h5 --decode 20 --temperature 1.5 --seed 3
ref -o b.h5 --force-ids "$(ids a.h5 | tr ' ' ,)"
same "drawn and forced"
echo '{ version: 1, defaults: { max_abs: 0 } }' >exact.yaml
vernier compare a.h5 b.h5 --limits exact.yaml | tail -n 1
vernier show a.h5 --format json | $PYTHON -c "
import json, sys
run = json.load(sys.stdin)['run']
print({k: run.get(k) for k in ('decode', 'decoding', 'temperature', 'seed')})"
vernier show b.h5 | grep -E '^  (decod|temp|seed)'

echo "== rows of the whole run"
ref -o c.h5 --decode 3 --tokens 16-18 --points logits
vernier show c.h5 | grep -A 3 '^step'
vernier show c.h5 step.2
vernier show c.h5 step.4; echo "[$?]"
vernier show c.h5 step.1/logits | grep shape

echo "== two that go their own ways"
ref -o b.h5 --decode 20 --temperature 1.5 --seed 4
vernier compare a.h5 b.h5 2>&1; echo "[$?]"
ref -o c.h5 --decode 19 --temperature 1.5 --seed 3
vernier compare a.h5 c.h5 2>&1; echo "[$?]"

echo "== the last token of the prompt is run again"
ref -o a.h5 --force-ids 7,8,9
last=$(tr ',' '\n' <$FIXTURES/prompts/p017.ids | tail -n 1)
ref -o more.h5 --force-ids "$last,7,8,9"
ref -o other.h5 --force-ids "$last,7,8"
$PYTHON -c "
import h5py, shutil
shutil.copy('more.h5', 'same.h5')
with h5py.File('same.h5', 'r+') as f:
    f['run/positions'][17:] -= 1
    f['run/positions'].attrs.pop('digest', None)"
for cand in more other same; do
	vernier compare a.h5 $cand.h5 2>&1 | grep -oE 'token ids: .*|within.*'
	vernier show $cand.h5 --check 2>&1 | grep again
done
vernier compare more.h5 same.h5 2>&1 | grep -o 'positions: .*'
echo "== the last place of the context; one token more is refused, and nothing is written"
rm -f *.h5 exact.yaml
try() {
	echo "\$ $*"
	"$@" </dev/null >said 2>&1
	s=$?
	head -n 1 said | sed 's/ in [0-9.]* s .*//'
	rm said
	echo "[$s]"
}
try vernier capture ref "$M" --ids "$P" --points logits --decode 495 -o full.h5
rm full.h5
try vernier capture ref "$M" --ids "$P" --points logits --decode 496 -o over.h5
try vernier capture ref "$M" --ids "$P" --points logits --decode 99999999999 -o over.h5
seq -s, 1 496 >over.ids
try vernier capture ref "$M" --ids "$P" --force-ids @over.ids -o over.h5
try vernier capture ref "$M" --ids "$P" --force-ids 1,512 -o over.h5
try vernier capture ref "$M" --ids "$P" --force-ids @nowhere -o over.h5
try vernier capture ref "$M" --ids "$P" --decode 3 --tokens 18-20 -o over.h5
ls
