# Three prompts at three temperatures, one file: what does a candidate lose against the reference on
# the reference's own texts?
# Headline: [0-9] of 9 scenarios within limits; perplexity [0-9.]+ against [0-9.]+,
#            [+-][0-9.]+ % \(95 %: .*\)
for t in 0 0.7 1.5; do
	for prompt in "The quick brown fox" "one two three" "Once upon a time"; do
		echo "{\"name\": \"${prompt%% *}-$t\", $(prompt "$prompt"), \"decode\": 24, \"temperature\": $t, \"seed\": 7}"
	done
done | sed 's/, "temperature": 0, "seed": 7//' >scenarios.jsonl
vernier capture ref "$M" --prompts scenarios.jsonl -o refs
vernier capture ref "$M" --prompts scenarios.jsonl --force-ids-from refs --precision f16-acc16 --inject N1.1e-5@layer0 \
	-o cands 2>/dev/null
vernier compare refs cands -q --summary all.json || [ $? = 1 ]
vernier evaluate --recordings refs cands --format json -o gap.json || [ $? = 1 ]
$PYTHON - <<'P'
import json
pairs, of = json.load(open("all.json"))["pairs"], json.load(open("gap.json"))
low, high = (100 * (x - 1) for x in of["gap"]["interval"])
print(sum(p["status"] == 0 for p in pairs), "of", len(pairs), "scenarios within limits; perplexity %.2f against %.2f, "
      "%+.2f %% (95 %%: %+.2f to %+.2f)"
      % (of["candidate"]["perplexity"], of["reference"]["perplexity"], 100 * (of["gap"]["perplexity_ratio"] - 1), low,
         high))
P
