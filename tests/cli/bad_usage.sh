# Bad usage: the rule, the offender, status 2.
M=$FIXTURES/qwen2-trained
try() { echo "\$ vernier $*"; vernier "$@" </dev/null >said 2>&1; s=$?; head -n 1 said; rm said; echo "[$s]"; }
try
try no-such-command
try help --man nothing
try help --completions tcsh
try help --man
try help --completions
try help --man-page
try help compare explain
try help --man compare extra
try help --completions bash extra
try help --prefix --man compare
try help --nonesuch
try help nonesuch
try help nothing.md
try --version --foo
try --version extra
try -v --verbose --verbose=1
try capture
try capture ref
try capture cpu "$M" --ids 1 -o a.h5
try capture ref "$M" --ids 1,2
try capture ref "$M" -o a.h5
try capture ref "$M" --ids 1,2 -o a.h5 --no-such-option
try capture ref "$M" --ids 1,2 -o a.h5 extra
try capture ref "$M" --ids "" -o a.h5
try capture ref "$M" --ids 1,,2 -o a.h5
try capture ref "$M" --ids 1,x -o a.h5
try capture ref "$M" --ids -1 -o a.h5
try capture ref "$M" --ids 512 -o a.h5
try capture ref "$M" --ids 99999999999999999999 -o a.h5
try capture ref "$M" --ids @nowhere.ids -o a.h5
: >empty.ids
try capture ref "$M" --ids @empty.ids -o a.h5
seq -s, 0 511 >full.ids
seq -s, 0 511 | sed 's/$/,1/' >over.ids
try capture ref "$M" --ids @over.ids -o a.h5
try capture ref "$M" --ids 1,2 -o a.h5 --precision f8
try capture ref "$M" --ids 1,2 -o a.h5 --threads 0
try capture ref "$M" --ids 1,2 -o a.h5 --layers 3-1
try capture ref "$M" --ids 1,2 -o a.h5 --layers 7-9
try capture ref "$M" --ids 1,2 -o a.h5 --tokens first
try capture ref "$M" --ids 1,2 -o a.h5 --kv paged
try capture gpu "$M" --ids 1,2 -o a.h5 --experts loaded
try capture ref "$M" --ids 1,2 -o a.h5 --experts some
try capture ref "$M" --ids 1,2 -o a.h5 --block-size 16
try capture gpu "$M" --ids 1,2 -o a.h5 --kv pages
try capture gpu "$M" --ids 1,2 -o a.h5 --block-size 16
try capture gpu "$M" --ids 1,2 -o a.h5 --kv paged --block-size 0
try capture ref "$M" --ids 1,2 -o a.h5 --points 'layer*.nothing'
try capture ref "$M" --ids 1,2 -o a.h5 --points 'layer{0'
try capture ref "$M" --ids 1,2 -o a.h5 --decode -1
try capture ref "$M" --ids 1,2 -o a.h5 --decode many
try capture ref "$M" --ids 1,2 -o a.h5 --temperature 0.7
try capture ref "$M" --ids 1,2 -o a.h5 --seed 1
try capture ref "$M" --ids 1,2 -o a.h5 --decode 2 --temperature warm
try capture ref "$M" --ids 1,2 -o a.h5 --decode 2 --temperature -1
try capture ref "$M" --ids 1,2 -o a.h5 --decode 2 --temperature nan
try capture ref "$M" --ids 1,2 -o a.h5 --decode 2 --seed -1
try capture ref "$M" --ids 1,2 -o a.h5 --decode 2 --force-ids 1,2
try capture ref "$M" --ids 1,2 -o a.h5 --force-ids 1,,2
try capture ref "$M" --ids 1,2 -o a.h5 --force-ids 1 --temperature 1
try capture ref "$M" --ids 1,2 -o nowhere/a.h5
try capture ref "$M" --prompts lines --batch-row 1 -o out
mkdir dir
try capture ref "$M" --ids 1,2 -o dir
echo precious >there.h5
try capture ref "$M" --ids 1,2 -o there.h5
cat there.h5
try show
try show nowhere.h5
try points nowhere
try evaluate "$M" --text t.txt --batch-row 1 --candidate ref
try evaluate --recordings a.h5 b.h5 --batch-row 0
try evaluate "$M" --batch-row 0 --text t.txt --ids 1,2
try limits
try limits nowhere.yaml
try compare one.h5
try compare nowhere.h5 there.h5
try synth
try synth no-such-shape -o d
try synth qwen2 -o d
try compare a b --precison f16
try compare a b --allow token_id,weights
try import "$FIXTURES/qwen2-trained" -o d.h5
try synth qwen2-0.5b
try synth qwen2-0.5b -o dir --layers 1
try synth qwen2-0.5b -o d --layers x
try capture ref "$M" --ids 1,2 -o a.h5 --ids 3
try capture ref "$M" --ids 1,2 -o a.h5 --output b.h5
try compare there.h5 there.h5 --floor-precision f16
try compare there.h5 there.h5 --replay
try compare there.h5 there.h5 --limits a.yaml --limits b.yaml
echo "== what people of other programs type"
vernier capture ref "$M" --ids 1,2 -o rec.h5 2>/dev/null
for option in --dtype=f16 --input-ids=1,2 --max-new-tokens=3 "--tokens 1,2" "--model $M" "-m $M"; do
	try capture ref "$M" --ids 1,2 -o a.h5 $option
done
for given in "rec.h5 there.h5" "report rec.h5" "merge rec.h5 there.h5" "limits rec.h5" "isolate rec.h5" \
	"help layer1.q_rope" "help R2" "points $M --faults R1"; do
	try $given
done
try limits 1e-3
rm rec.h5
head -c 100000000 /dev/zero | vernier capture ref "$M" --ids @/dev/stdin -o a.h5
echo "[$?]"
mkfifo empty-pipe; (: >empty-pipe &) ; try capture ref "$M" --ids @empty-pipe -o a.h5
echo "left behind:" *
