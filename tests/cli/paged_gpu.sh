# A paged cache: the bits of a contiguous one at every checkpoint of every step,
# the cache itself among them.
vernier devices >/dev/null 2>&1 || { echo "SKIPPED: no Vulkan device"; exit 77; }
P=@$FIXTURES/prompts/p017.ids
digests() { $PYTHON -c "
import h5py, sys
f = h5py.File(sys.argv[1])
found = []
def visit(name, d):
    if isinstance(d, h5py.Dataset) and name.startswith('step.'): found.append((name, d.attrs['digest']))
f.visititems(visit)
print(len(found), sorted(found), *f['run/token_ids'])" "$1"; }
run() { vernier capture gpu "$@" --ids "$P" --points '*' --decode 20 --force 2>err || cat err; }
same() { [ "$(digests a.h5)" = "$(digests b.h5)" ] && echo "the same: $1" || echo "OTHER: $1"; }
for name in gpt2 mistral qwen2; do
	M=$FIXTURES/$name-trained
	run "$M" -o a.h5 --kv contiguous
	run "$M" -o b.h5 --kv paged
	same "$name"
	run "$M" -o b.h5 --kv paged --block-size 7 --validate --guard
	same "$name, blocks of 7, validated and guarded"
done
vernier show b.h5 | grep -E '^  (kv|block_size) '
vernier show b.h5 step.20/layer1.k_cache | grep -E '^  (dtype|shape|axes|basis|point|op) '
