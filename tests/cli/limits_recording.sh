# The effect of a limits file on a recording: the rule for each checkpoint, and rules that limit
# nothing.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids @$FIXTURES/prompts/p017.ids -o ref.h5 2>/dev/null
cat >own.yaml <<'END'
version: 1
name: own
extends: fp16-acc32.yaml
rules:
  - { match: "layer*.q_rope", max_abs: 1.0e-4, nmse: { first: 1.0e-6, last: 1.0e-3 }, why: half an ulp is more }
  - { match: "layer1.q_rope", max_abs: 1000, why: larger than anything there }
  - { match: "layer*.q_rop", cosine: 0.99, why: misspelt }
  - { match: "layer0.v_proj", rmse: 0.1, why: the next rule has the last word }
  - { match: "layer*.v_proj", rmse: 0.2, nmse_over_floor: 0.5, kl_mean: 1, why: below one floor }
END
echo "== rule by rule"
vernier limits own.yaml --recording ref.h5 --dtype f16 | sed -n '1p; /^own.yaml:5/,$p'
echo "== a checkpoint"
vernier limits own.yaml layer0.q_rope layer1.q_rope --recording ref.h5 | grep -E '^layer|nmse |max_abs'
echo "== nothing to warn about in vernier's own, each in its format"
for p in fp32:f32 fp16-acc32:f16 fp16-acc16:f16 bf16:bf16 q8_0:f16 q4_k:f16; do
	vernier limits ${p%:*}.yaml --recording ref.h5 --dtype ${p#*:} | grep -c warning
done
echo "== the same for a program"
vernier limits own.yaml --recording ref.h5 --format json >own.json
$PYTHON -c "
import json
r = json.load(open('own.json'))
print(r['schema'], r['layers'], len(r['checkpoints']), len(r['warnings']))
for x in r['rules'][-5:]:
    print(x['line'], x['match'], x['matches'])
    for k in x['keys']:
        print('  ', k['metric'], k['limit'], k.get('by_depth'), k['holds'], k['overridden'],
              k.get('by', {}).get('line'))
for c in r['checkpoints']:
    if 'q_rope' in c['name']:
        print(c['name'], [(l['metric'], l['limit'], l['rule']['line']) for l in c['limits']
                          if l['metric'] in ('nmse', 'max_abs') and not l['without_floor']])
"
echo "== names of another engine: of a recording here, of runs that limits are fitted to"
vernier limits fp32.yaml --recording "$FIXTURES/foreign/hf-llama.h5" --names hf | sed -n '1,3p'
vernier capture ref "$FIXTURES/llama-trained" --ids "@$FIXTURES/prompts/p017.ids" -o llama.h5 2>/dev/null
vernier calibrate llama.h5 "$FIXTURES/foreign/hf-llama.h5" --names hf --allow missing,extra -o hf.yaml
vernier compare llama.h5 "$FIXTURES/foreign/hf-llama.h5" --names hf --allow missing,extra --limits hf.yaml | tail -n 1
vernier calibrate "$FIXTURES/foreign/hf-llama.h5" llama.h5 --ref-names hf --allow missing,extra -o fh.yaml
echo "== complaints"
vernier limits own.yaml --names hf 2>&1 | sed -n 1p
vernier limits own.yaml --dtype f16 2>&1 | sed -n 1p
vernier limits own.yaml --recording ref.h5 --dtype q4_k 2>&1 | sed -n 1p
vernier limits own.yaml --recording own.yaml
echo "== limits that no run can keep, or none can break"
vernier capture ref "$FIXTURES/qwen2-trained" --ids 1,2,3,4,5,6,7,8 -o eight.h5 2>/dev/null
for k in 'differing: 1000000000000' 'nonfinite: 384' 'ulp_max: 100000' 'ulp_p99: 40000' 'kl_max: 20' 'cosine: 1' \
	'worst_token_cosine: 1' 'norm_ratio: 0' 'differing: 0' 'kl_mean: 0' 'scale: 1'; do
	case $k in kl*) p=logits ;; *) p=layer1.q_proj ;; esac
	printf 'version: 1\nname: k\nrules:\n  - match: %s\n    %s\n    why: x\n' $p "$k" >k.yaml
	vernier limits k.yaml --recording eight.h5 --dtype f16 | grep '^warning'
done
printf \
	'version: 1\nname: k\nrules:\n  - { match: logits, nmse: 1.0e-3, why: x }\n  - { match: layer1.q_proj, why: x }\n' \
	>k.yaml
vernier limits k.yaml
