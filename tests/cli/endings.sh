# -o selects the form of a report by the ending of its path, and says what was written.
M="$FIXTURES/qwen2-trained"
vernier capture ref "$M" --ids 5,6,7 -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids 5,6,7 --precision f16 -o half.h5 2>/dev/null
begins() { $PYTHON -c 'import sys; print(sys.argv[1], repr(open(sys.argv[1]).read(9)))' "$1"; }
echo "== endings that are known, in any case; .txt, .log and none are text"
for f in r.HTML r.htm r.Md r.json r.xml r.csv r.txt r.log report a.b/report; do
	mkdir -p a.b
	vernier compare ref.h5 half.h5 -o $f | sed 's/.*Written/Written/'
	begins $f
done
echo "== others are refused before anything is compared, but with --format"
vernier compare ref.h5 half.h5 -o r.pdf; echo "[$?]"
vernier compare ref.h5 half.h5 -o r.; echo "[$?]"
vernier compare ref.h5 half.h5 --format json -o r.dat; echo "[$?]"
begins r.dat
vernier table ref.h5 half.h5 -o t.xml; echo "[$?]"
vernier table ref.h5 half.h5 -o t.HTM; echo "[$?]"
vernier evaluate "$M" --ids 5,6,7 --candidate ref --decode 0 -o e.csv; echo "[$?]"
vernier evaluate "$M" --ids 5,6,7 --candidate ref --precision f32 --decode 0 -o e.json 2>/dev/null; echo "[$?]"
begins e.json
vernier isolate "$M" --ids 5,6,7 --check true -o i.yaml; echo "[$?]"
vernier isolate "$M" --ids 5,6,7 --check true -o i.txt 2>/dev/null; echo "[$?]"
