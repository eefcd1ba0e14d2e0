# A GPU run judged while it is recorded; if a prompt is stopped, the engine continues with the next
# one.
vernier devices >/dev/null 2>&1 || { echo "SKIPPED: no Vulkan device"; exit 77; }
M=$FIXTURES/qwen2-trained
I="--ids @$FIXTURES/prompts/p017.ids"
clean() { sed 's/, [0-9.]* [a-zA-Z]* in [0-9.]* s.*//; s/: [a-z_]* [0-9.]*, limit.*/: .../'; }
capture() { vernier capture "$@" 2>&1 | clean; echo "[${PIPESTATUS[0]}]"; }
verdict() { vernier compare "$@" 2>&1 | grep -E '^(OUTSIDE  [a-z]\.h5|verdict)' | sed 's/; [0-9]* digests[^.]*//'; }
vernier capture ref "$M" $I -o ref.h5 2>/dev/null
capture gpu "$M" $I --against ref.h5 -o good.h5
verdict ref.h5 good.h5
capture gpu "$M" $I --inject R1@layer1 --against ref.h5 -o bug.h5
verdict ref.h5 bug.h5
vernier explain ref.h5 bug.h5 --model "$M" | grep ^explained
printf '%s\n' '{"name": "a", "ids": [1, 2, 3, 4, 5, 6, 7, 8]}' \
	'{"name": "b", "ids": [9, 10, 11, 12, 13, 14], "decode": 2}' >p.jsonl
vernier capture ref "$M" --prompts p.jsonl -o refs 2>/dev/null
capture gpu "$M" --prompts p.jsonl --inject R1@layer1 --against refs --stop-at-first -o cands
verdict refs cands
