# The same bits on the GPU: with and without taps, run after run; and a clean run under the
# validation layers and the guard.
vernier devices >/dev/null 2>&1 || { echo "SKIPPED: no Vulkan device"; exit 77; }
logits() { $PYTHON -c "
import h5py, sys
print(h5py.File(sys.argv[1])['step.0/logits'].attrs['digest'])" "$1"; }
same() { [ "$(logits a.h5)" = "$(logits b.h5)" ] && echo "the same logits: $1" || echo "OTHER LOGITS: $1"; }
run() {
	vernier capture gpu "$FIXTURES/qwen2-trained" --ids "@$FIXTURES/prompts/p070.ids" --force "$@" \
		2>/dev/null || echo failed
}
for precision in f16 f16-acc16 f32; do
	run -o a.h5 --precision $precision --points logits
	run -o b.h5 --precision $precision --points '*'
	same "$precision, one point and every point"
	run -o b.h5 --precision $precision --points logits
	same "$precision, two runs"
	run -o b.h5 --precision $precision --points '*' --validate --guard
	same "$precision, validated and guarded"
done
