# Which operations to replace in many layers: one component or two, wrong in some layers or in all.
# EVERY=1 runs more cases than the tests need, in 24 layers.
LAYERS=12
[ -z "$EVERY" ] || LAYERS=24
$PYTHON "$TESTS/support/deep_model.py" "$FIXTURES/qwen2-trained" $LAYERS deep
IDS=5,6,7
cat >tight.yaml <<'END_LIMITS'
version: 1
name: tight
rules:
  - { match: "*", nmse: 1.0e-9, why: "far above float32, far below half" }
END_LIMITS
# Half in what is wrong and not replaced. WRONG: names, one per line.
cat >engine <<'END_ENGINE'
wrong=$(grep -vxF "$(echo "$VERNIER_FORCE_REF" | tr , '\n')" wrong | sed 's/^/--precision f16@/')
echo "$VERNIER_FORCE_REF" | md5sum >>sets
"$VERNIER" capture ref deep --ids "$1" -o out.h5 $wrong 2>/dev/null
END_ENGINE
cat >said.py <<'END_PYTHON'
import json
import sys
r = json.load(open("r.json"))
most = int(sys.argv[1])
sets = open("sets").read().split("\n")[:-1]
print(r["verdict"], *("%s, %d operations" % (s["switch"], len(s["replaced"])) for s in r["sets"]), sep=": ")
print("exactly what is wrong:", sorted(r["sets"][0]["replaced"]) == sorted(open("wrong").read().split()))
if r["runs"] <= most:
    print("at most %d runs, of which one set twice: %s" % (most, len(sets) - len(set(sets)) == len(r["sets"])))
else:
    print("%d runs, more than %d" % (r["runs"], most))
print("%s %d runs of %d operations" % (sys.argv[2], r["runs"], r["operations"]), file=open("table", "a"))
END_PYTHON
isolate() {
	local most=$1 kind=$2; shift 2
	rm -f sets
	vernier isolate deep --ids $IDS --check "bash engine $IDS" --check-recording out.h5 --limits tight.yaml \
		--format json -o r.json --force
	echo "[$?]"
	$PYTHON said.py $most "$kind"
}
every() { for l in $2; do echo "layer$l.$1"; done; }
# run LAYERS: one component; run LAYERS two: two of them.
run() {
	local n=$(echo $1 | wc -w)
	every q_rope "$1" >wrong
	[ -z "$2" ] || every down_proj "$1" >>wrong
	echo "== ${2:-one} in $n of $LAYERS layers"
	isolate $([ -z "$2" ] && echo 60 || echo 120) "${2:-one} component(s), $n layers:"
}
all=$(seq -s ' ' 0 $((LAYERS - 1)))
if [ -n "$EVERY" ]; then
	for layers in 13 "3 17" "0 5 11 20" "1 4 7 10 13 16 19 22" "$all"; do run "$layers"; run "$layers" two; done
else
	run "0 3 7 10"
	run "$all"
	run "3 8" two
fi
echo "== operations that the user replaces"
{ every q_rope "2 9"; every k_rope "5"; } >wrong
# Good once all that is wrong is replaced: an engine that answers at once.
cat >answer <<'END_ANSWER'
! grep -vxF "$(echo "$VERNIER_FORCE_REF" | tr , '\n')" wrong >/dev/null
END_ANSWER
export VERNIER_FORCE_REF='*.{q,k}_rope,*.v_proj'
vernier isolate deep --check "sh answer"; echo "[$?]"
every q_rope "$all" >wrong
vernier isolate deep --check "sh answer"; echo "[$?]"
VERNIER_FORCE_REF='*.nosuch' vernier isolate deep --check "sh answer"; echo "[$?]"
[ -z "$TABLE" ] || cp table "$TABLE"
