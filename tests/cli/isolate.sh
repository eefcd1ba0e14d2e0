# Which operations to replace to repair a run: another engine, driven by a command; what is refused.
M=$FIXTURES/qwen2-trained
try() {
	echo "\$ isolate ${*#"$M"}"
	vernier isolate "$@" >said 2>&1
	local status=$?
	sed 's#vernier-isolate-[A-Za-z0-9]*#PLACE#' said
	echo "[$status]"
}
has() { echo "case ,\$VERNIER_FORCE_REF, in *,$1,*) ;; *) ${2:-exit 1};; esac"; }
echo "== by exit status"
try "$M" --check 'true'
try "$M" --check "$(has layer1.q_rope); echo this is nobody\'s"
try "$M" --check "$(has layer1.q_rope); $(has layer0.v_proj)"
try "$M" --check "$(has layer1.q_rope "$(has embed "$(has logits)")")"
try "$M" --check 'exit 1'
echo "== no answer"
try "$M" --check 'exit 3'
try "$M" --check 'kill -9 $$'
try "$M" --check 'no-such-program'
try "$M" --check 'echo x >>count; [ $(wc -l <count) -gt 1 ] && [ $(wc -l <count) != 8 ]'
echo "== by a recording"
# An engine whose q_rope and down_proj of layer 1 round to half, where they are not replaced.
cat >engine <<'END'
precision() { case ,$VERNIER_FORCE_REF, in *,$1,*) ;; *) echo "--precision f16@$1";; esac; }
"$VERNIER" capture ref "$1" --ids 5,6,7,8,9,10 -o out.h5 $(precision layer1.q_rope) \
	$(precision layer1.down_proj) 2>/dev/null
END
cat >tight.yaml <<'END'
version: 1
name: tight
rules:
  - { match: "*", nmse: 1.0e-9, why: "far above float32, far below half" }
END
try "$M" --ids 5,6,7,8,9,10 --check "bash engine '$M'" --check-recording out.h5 --limits tight.yaml -o report.json
$PYTHON - <<'END'
import json
r = json.load(open('report.json'))
print(r['schema'], r['verdict'], r['tokens'], r['unchanged']['first'], r['all_replaced']['within'])
for s in r['sets']: print(s['kind'], s['replaced'], s['words'])
for p in r['by_itself']: print(p['name'], p['left_out_of'], p['own_within'], p['words'])
print([c['outside'] for c in r['curve']], [c['with'] for c in r['curve']][:3])
END
try "$M" --ids 5,6,7,8,9,11 --check "bash engine '$M'" --check-recording out.h5 --limits tight.yaml
try "$M" --ids 5,6,7 --check true --check-recording out.h5
touch out.h5
try "$M" --ids 5,6,7 --check "bash engine '$M'" --check-recording out.h5
echo "== refused"
try
try "$M"
try "$M" "$M" --ids 1
try "$M" --ids 1 --check-recording out.h5
try "$M" --ids 1 --check true --check-recording out.h5 --precision f16
try "$M" --check true --limits tight.yaml
try "$M" --ids 1 --precision f8
try "$M" --ids 1 --precision bf16
try "$M" --ids 1 --precision 'f64@logits'
try "$M" --ids 1 --reference-precision f8
try "$M" --ids 1 --kv pages
try "$M" --ids 1 --points '{'
try "$M" --ids 1 --format html
try "$M" --ids 1 --no-such-option
try nowhere --ids 1
try "$M" --ids 1 --format text -o tight.yaml
ls "$TMPDIR"
