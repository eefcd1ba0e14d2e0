# The same bits: with and without taps, run after run, for 1, 2 and 3 threads.
logits() { $PYTHON -c "
import h5py, sys
print(h5py.File(sys.argv[1])['step.0/logits'].attrs['digest'])" "$1"; }
same() { [ "$(logits a.h5)" = "$(logits b.h5)" ] && echo "the same logits: $1" || echo "OTHER LOGITS: $1"; }
run() { vernier capture ref "$FIXTURES/qwen2-trained" --ids "@$FIXTURES/prompts/p200.ids" --force "$@" 2>/dev/null; }
for precision in f32 f64 f16 f16-acc16; do
	run -o a.h5 --precision $precision --points logits --threads 2
	run -o b.h5 --precision $precision --points '*' --threads 2
	same "$precision, one point and every point"
	run -o b.h5 --precision $precision --points logits --threads 2
	same "$precision, two runs"
	run -o b.h5 --precision $precision --points logits --threads 1
	same "$precision, 2 threads and 1"
	run -o b.h5 --precision $precision --points logits --threads 3
	same "$precision, 2 threads and 3"
done
