# An operation that is wrong within the limits of its checkpoint: the replay asks every operation.
M=$FIXTURES/gpt2-trained
run() { vernier capture ref "$M" --ids "@$FIXTURES/prompts/p070.ids" "$@" >/dev/null 2>&1 || echo failed; }
say() { say_lines '^(verdict|OUTSIDE|within|vernier compare)' compare "$@"; }
run -o ref.h5
run -o good.h5 --precision bf16
run -o quick.h5 --precision bf16 --inject 'M1.quick@*'

say ref.h5 good.h5 --model "$M"
echo "== a sigmoid in place of the error function, in bfloat16"
say ref.h5 quick.h5 --model "$M" --no-replay
say ref.h5 quick.h5 --model "$M"
vernier compare ref.h5 quick.h5 --model "$M" --format json | "${PYTHON:-python3}" -c "
import json, sys
for c in json.load(sys.stdin)['checkpoints']:
    for l in c['limits']:
        if not l['holds']:
            print(c['name'], c['status'], l['metric'], 'limit', l['limit'], 'over it', l['value'] > l['limit'])"

echo "== allowed by name"
cat >allowed.yaml <<'YAML'
version: 1
name: quick
extends: bf16.yaml
rules:
  - match: "*.mlp_act"
    why: this engine has the sigmoid form on purpose
    operation: allowed
YAML
say ref.h5 quick.h5 --model "$M" --limits allowed.yaml
vernier limits allowed.yaml layer0.mlp_act | grep -E 'operation|accumulated'
sed -i 's/operation: allowed/accumulated: fail/' allowed.yaml
vernier limits allowed.yaml layer0.mlp_act | grep -E 'operation|accumulated'
sed -i 's/accumulated: fail/accumulated: refused/' allowed.yaml
vernier limits allowed.yaml layer0.mlp_act

echo "== options that exclude each other"
say ref.h5 quick.h5 --model "$M" --replay --no-replay
say ref.h5 quick.h5 --replay
say ref.h5 quick.h5 --replay-routing
say ref.h5 quick.h5 --model "$M" --explain --no-replay
vernier explain ref.h5 quick.h5 --model "$M" --no-replay; echo "[$?]"
