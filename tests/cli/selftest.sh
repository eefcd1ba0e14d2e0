# compare catches every mutation that it must catch, for the right reason; limits that judge nothing
# are noticed.
selftest() { PYTHONPATH=$TESTS/../capture/python $PYTHON -m vernier_parity selftest --vernier "$VERNIER" "$@"; }
selftest >said
echo "[$?]"
tail -1 said
grep -E '(MISSED|not run) .*/' said | sed 's/  *outside by.*//; s/  *refused.*//'
ls -A "$TMPDIR"

echo 'version: 1
defaults: { nmse: 1.0e+9, why: a limit that everything keeps to }' >lifted.yaml
selftest --limits lifted.yaml \
	--only '{numbers/{nan,zeroed,scaled,sign-bit},places/{row-copied,scores-late},names/missing}' >said
echo "[$?]"
tail -1 said
grep -c '^MISSED' said
grep '^caught' said | awk '{ print $5 }' | tr '\n' ' '
echo

echo "== a pair outside its limits is reported before its rows"
vernier capture ref "$FIXTURES/qwen2-trained" --ids 5,6,7,8,9,10,11,12 -o r.h5 2>/dev/null
vernier capture ref "$FIXTURES/qwen2-trained" --ids 5,6,7,8,9,10,11,12 --inject A2@layer1 -o bad.h5 2>/dev/null
selftest r.h5 bad.h5 --only numbers/nan
echo "[$?]"
