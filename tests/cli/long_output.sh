# What a report leaves out: of a model of 24 layers at most 40 lines; all of it with --all.
vernier synth tiny --layers 24 -o deep >/dev/null 2>&1
ref() { vernier capture ref deep --ids 1,2,3,4,5,6,7,8,9,10,11,12 "$@" 2>/dev/null || echo failed; }
lines() {
	local n
	n=$(vernier compare "$@" --model deep 2>/dev/null | wc -l)
	[ "$n" -gt 10 ] && [ "$n" -le 40 ] && echo "at most 40 lines" || echo "$n lines"
}
# The table and what follows it, without numbers.
shape() { grep -E "^(OUTSIDE|inherited|within|missing|more|\.\.\.|verdict)" |
	sed -E 's/; [0-9]+ digests.*//; s/  +[0-9.e+-]+  .*//; s/worst nmse.*//'; }
ref -o ref.h5
ref -o cand.h5 --precision f16 --inject 'R1@layer7.*'
echo "== one fault"
lines ref.h5 cand.h5
vernier compare ref.h5 cand.h5 --model deep | shape
echo "with --all: $(vernier compare ref.h5 cand.h5 --model deep --all | grep -c '^OUTSIDE') outside, one line each"
echo "== without a plan of what inherits: rows, as many as fit"
lines ref.h5 cand.h5 --no-replay --allow floor
vernier compare ref.h5 cand.h5 | shape |
	tail -n 3
echo "== a fault in every layer and step"
vernier capture ref deep --ids 1,2,3 --decode 8 -o steps.h5 2>/dev/null
vernier capture ref deep --ids-from steps.h5 --force-ids-from steps.h5 --precision f16 --inject 'R1@layer*.*' \
	-o all.h5 2>/dev/null
lines steps.h5 all.h5
vernier compare steps.h5 all.h5 --model deep 2>/dev/null | grep -E '^(origins|\.\.\.)'
echo "== a partial recording"
ref -o part.h5 --precision f16 --inject 'R1@layer0.*' --points layer7.q_rope --points layer8.q_rope --points logits
lines ref.h5 part.h5
vernier compare ref.h5 part.h5 --model deep | shape
echo "== several candidates"
ref -o every.h5 --precision f16 --inject 'R1@layer*.*'
lines ref.h5 every.h5 cand.h5
vernier compare ref.h5 every.h5 cand.h5 --model deep | grep '^\.\.\.'
vernier compare ref.h5 cand.h5 part.h5 | grep ' to '
echo "== another model: the first line and one more"
say compare ref.h5 cand.h5 --model "$FIXTURES/llama-trained"
echo "== swapped: said first; a refused floor clears nothing"
vernier compare cand.h5 ref.h5 --model deep 2>/dev/null | sed -n '1p; /^cleared/p' | cut -c1-80
