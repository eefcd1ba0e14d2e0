# Decoding on the GPU: the same seed, the same tokens, run after run; with validation and guard; and
# the ids of the reference can be forced on it.
vernier devices >/dev/null 2>&1 || { echo "SKIPPED: no Vulkan device"; exit 77; }
M=$FIXTURES/qwen2-trained
P=@$FIXTURES/prompts/p017.ids
digests() { $PYTHON -c "
import h5py, sys
f = h5py.File(sys.argv[1])
def visit(name, d):
    if isinstance(d, h5py.Dataset) and name.startswith('step.'): print(name, d.attrs['digest'])
f.visititems(visit)
print(*f['run/token_ids'])" "$1" | sort; }
run() { vernier capture "$@" --ids "$P" --force 2>err || cat err; }
same() { [ "$(digests a.h5)" = "$(digests b.h5)" ] && echo "the same: $1" || echo "OTHER: $1"; }
for t in 0 1.5; do
	run gpu "$M" -o a.h5 --decode 20 --temperature $t --seed 11
	run gpu "$M" -o b.h5 --decode 20 --temperature $t --seed 11
	same "temperature $t, two runs"
	run gpu "$M" -o b.h5 --decode 20 --temperature $t --seed 11 --validate --guard
	same "temperature $t, validated and guarded"
done
run ref "$M" -o ref.h5 --decode 20 --temperature 1.5 --seed 1
forced=$($PYTHON -c "
import h5py
print(*h5py.File('ref.h5')['run/token_ids'][17:], sep=',')")
run gpu "$M" -o gpu.h5 --force-ids "$forced"
vernier compare ref.h5 gpu.h5 --model "$M" | grep -oE '^within +[^;]*|^verdict.*|^OUTSIDE.*'
