# Models with one thing wrong: one clear line, status 2, and no recording left behind.
for kind in no-config config-not-json unknown-type rope-type quantised activation wider no-weights empty truncated \
	header-too-long header-not-json text overlap out-of-range size-disagrees shape-overflows unknown-dtype int-dtype \
	transposed missing-tensor left-over index-escapes index-absolute index-missing-file index-lies; do
	$PYTHON "$TESTS/support/damage.py" "$FIXTURES/qwen2-trained" m "$kind"
	echo "== $kind"
	vernier capture ref m --ids 1,2,3 -o run.h5
	echo "[$?]"
	rm -rf m
done
vernier capture ref nowhere --ids 1,2,3 -o run.h5
echo "[$?]"
echo "left behind:" *
