# Models that are unusual and right: NaN weights are reported, not refused;
# shards give the same numbers.
export PYTHON
digests() { $PYTHON -c "
import h5py, sys
f = h5py.File(sys.argv[1])
print(f['step.0/logits'].attrs['digest'])" "$1"; }
vernier capture ref "$FIXTURES/qwen2-trained" --ids 1,2,3 -o plain.h5 2>/dev/null
$PYTHON "$TESTS/support/damage.py" "$FIXTURES/qwen2-trained" shards index-good
vernier capture ref shards --ids 1,2,3 -o shards.h5 2>/dev/null
[ "$(digests plain.h5)" = "$(digests shards.h5)" ] && echo "one file and shards: the same logits"
echo 1,2,3 | vernier capture ref "$FIXTURES/qwen2-trained" --ids @/dev/stdin -o stdin.h5 2>/dev/null
vernier capture ref "$FIXTURES/qwen2-trained" --ids @<(echo 1; sleep 0.2; echo 2 3) -o pipe.h5 2>/dev/null
[ "$(digests plain.h5) $(digests plain.h5)" = "$(digests stdin.h5) $(digests pipe.h5)" ] &&
	echo "ids from stdin and a pipe: the same logits"
$PYTHON "$TESTS/support/damage.py" "$FIXTURES/qwen2-trained" forgets index-forgets
vernier capture ref forgets --ids 1,2,3 -o forgets.h5 2>&1 | grep warning
$PYTHON "$TESTS/support/damage.py" "$FIXTURES/qwen2-trained" nan nan
vernier capture ref nan --ids 1,2,3 -o nan.h5 2>nan.err
echo "[$?]"
grep warning nan.err
vernier show nan.h5 | grep -A3 '^  weights'
