# GGUF files with one thing wrong: one clear line, status 2, and no recording left behind.
for kind in magic git-lfs version-1 version-4 big-endian counts value-type alignment string-length array-depth \
	array-length offset truncated \
	truncated-metadata empty rank unknown-type unsupported-type architecture missing left-over heads; do
	$PYTHON "$TESTS/support/damage_gguf.py" "$FIXTURES/gguf/qwen2-trained.f32.gguf" m.gguf "$kind"
	echo "== $kind"
	vernier capture ref m.gguf --ids 1,2,3 -o run.h5
	echo "[$?]"
	rm m.gguf
done
$PYTHON "$TESTS/support/damage_gguf.py" "$FIXTURES/gguf/qwen2-wide.q4_k_m.gguf" m.gguf row
echo "== row"
vernier points m.gguf
echo "[$?]"
rm m.gguf
# Weights of another quantisation are other weights, and a window is not invented.
vernier capture ref "$FIXTURES/gguf/qwen2-wide.q4_k_m.gguf" --ids 1,2 -o a.h5 2>/dev/null
vernier capture ref "$FIXTURES/gguf/qwen2-wide.mixed.gguf" --ids 1,2 -o b.h5 2>/dev/null
vernier compare a.h5 b.h5 2>&1 | sed 's/\(.*other numbers\).*/\1/'
vernier compare a.h5 a.h5 --allow itself --model "$FIXTURES/gguf/qwen2-wide.mixed.gguf" | tail -1
vernier synth qwen2-0.5b -o d --dtype q4_k
echo "[$?]"
rm a.h5 b.h5
echo "left behind:" *
