# Which operations of a GPU run to replace to repair it. The faults are nodes that compute in less
# than the run is to have.
vernier devices >/dev/null 2>&1 || { echo "SKIPPED: no Vulkan device"; exit 77; }
M=$FIXTURES/qwen2-trained
cat >tight.yaml <<'END'
version: 1
name: tight
rules:
  - { match: "*", nmse: 1.0e-9, why: "far above float32, far below half" }
END
isolate() {
	vernier isolate "$M" --ids "@$FIXTURES/prompts/p017.ids" --format json -o r.json --force "$@"
	echo "[$?]"
	$PYTHON - <<'END'
import json
r = json.load(open('r.json'))
print(r['verdict'], 'first', r['unchanged']['first'])
for s in r['sets']: print(' ', s['kind'], *s['replaced'], '-', s['words'])
for p in sorted(r['by_itself'], key=lambda p: p['name']):
    if p['left_out_of'] is not None: print('  ', p['name'], '-', p['words'])
print('   others:', *{p['words'] for p in r['by_itself'] if p['left_out_of'] is None})
kl = [c['kl_mean'] for c in r['curve']]
if len(kl) > 2: print('  repaired with', r['curve'][-2]['with'], 'the divergence falls:', kl[-2] < kl[0] / 100)
END
}
echo "== a correct run"
isolate
isolate --precision f32 --kv paged
echo "== one culprit"
isolate --precision f32 --precision f16@layer1.q_rope --reference-precision f32 --limits tight.yaml
echo "== two"
two="--precision f32 --precision f16@layer0.attn_context --precision f16-acc16@layer1.down_proj
	--reference-precision f32 --limits tight.yaml"
isolate $two
vernier isolate "$M" --ids "@$FIXTURES/prompts/p017.ids" $two | grep 'outside$' |
	sed -E 's/; [0-9]+ checkp/; N checkp/' | sort -u
echo "== a fault of the catalogue"
for fault in R1@layer1.q_rope A1@layer1.attn_context W1@layer0.attn_out; do
	echo "$fault"
	isolate --inject $fault | grep -v "others:\|by itself\|repaired"
done
echo "== only the logits are judged"
isolate --precision f32 --precision f16@layer1.q_rope --reference-precision f32 --limits tight.yaml --points logits
echo "== limits that no half can keep to"
isolate --limits tight.yaml
ls "$TMPDIR"
