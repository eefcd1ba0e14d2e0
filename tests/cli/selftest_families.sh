# Recordings of three families, with the floor that a person would give; no false alarm. The
# mutations whose outcome depends on the model's numbers; cli/selftest.sh makes all.
selftest() { PYTHONPATH=$TESTS/../capture/python $PYTHON -m vernier_parity selftest --vernier "$VERNIER" "$@"; }
these='{numbers/{nan,zeroed,scaled*,*row-scaled,channel-*,head-*,offset,noise,rounded-*,sign-bit,*behind-*},'
these=$these'numbers/{scores-*,{negated,scaled,head-zero}-in-reference*},'
these=$these'places/{rows-reversed,heads-*,other-*},names/*swapped}'
for family in gpt2 qwen2 qwen3_5_text; do
	for p in f32 f16; do
		vernier capture ref "$FIXTURES/$family-trained" --ids "@$FIXTURES/prompts/p017.ids" --precision $p \
			-o $family.$p.h5 2>/dev/null
	done
	cp $family.f16.h5 floor.h5
	selftest $family.f32.h5 $family.f16.h5 --floor floor.h5 --model "$FIXTURES/$family-trained" \
		--only "$these" >said
	echo "$family [$?] $(tail -1 said)"
	case $family in qwen2 | qwen3_5_text) ;; *) continue ;; esac
	for p in f32 bf16; do
		vernier capture ref "$FIXTURES/$family-trained" --ids 5,77,130 --force-ids 9,200,33,411,87,300,21,150,260 \
			--points 'layer1.{q_proj,c_attn,gdn_*,output}' --points 'layer0.output' --precision $p \
			-o steps.$family.$p.h5 2>/dev/null
	done
	selftest steps.$family.f32.h5 steps.$family.bf16.h5 --only 'steps/*' >said
	echo "$family, steps [$?] $(tail -1 said)"
done
