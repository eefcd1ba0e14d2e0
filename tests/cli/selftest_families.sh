# Recordings of every family, with the floor that a person would give; no false alarm.
for family in gpt2 llama mistral qwen2 qwen3 qwen3_5_text; do
	for p in f32 f16; do
		vernier capture ref "$FIXTURES/$family-trained" --ids "@$FIXTURES/prompts/p017.ids" --precision $p -o $family.$p.h5 2>/dev/null
	done
	cp $family.f16.h5 floor.h5
	vernier selftest $family.f32.h5 $family.f16.h5 --floor floor.h5 --model "$FIXTURES/$family-trained" --only '{numbers/*,names/*swapped}' >said
	echo "$family [$?] $(tail -1 said)"
done
