# Quantised weights on the GPU act as their floats: within 4 times the floor of the reference on the
# same file.
vernier devices >/dev/null 2>&1 || { echo "SKIPPED: no Vulkan device"; exit 77; }
for kind in mixed q4_k_m; do
	model=$FIXTURES/gguf/qwen2-wide.$kind.gguf
	vernier capture ref "$model" --ids 1,2,3,63,5 -o "$kind.ref.h5" 2>/dev/null
	for precision in f16 f32; do
		vernier capture gpu "$model" --ids 1,2,3,63,5 --precision $precision -o "$kind.$precision.h5" --validate \
			--guard 2>/dev/null
		vernier compare "$kind.ref.h5" "$kind.$precision.h5" --model "$model" | tail -1
	done
done
