# vernier.yaml, the settings of a project: options before the environment before the file.
M=$FIXTURES/qwen2-trained
vernier capture ref "$M" --ids 1,2,3,4 -o ref.h5 2>/dev/null
vernier capture ref "$M" --ids 1,2,3,4 --precision f16 -o cand.h5 2>/dev/null
mkdir -p deep/er models && ln -s "$(realpath "$M")" models/qwen2
cat >vernier.yaml <<'Y'
version: 1
model: models/qwen2
limits: mine.yaml
Y
printf 'version: 1\nname: mine\nextends: fp16-acc32.yaml\nrules: []\n' >mine.yaml
notes() { say_lines '^(note +(--model|limits|names)|limits|verdict)|vernier' "$@" | sed 's/; [0-9]* digests.*//'; }
echo "== found upwards, and named by the report"
cd deep/er && notes compare ../../ref.h5 ../../cand.h5 && cd ../..
echo "== the environment and options come before it"
VERNIER_MODEL=$M notes compare ref.h5 cand.h5
notes compare ref.h5 cand.h5 --model "$M" --limits fp16-acc32.yaml
notes compare ref.h5 cand.h5 --no-config
notes compare ref.h5 cand.h5 --bitwise
echo "== in other commands: MODEL too; a word of --format that they do not have is for others"
printf 'version: 1\nmodel: models/qwen2\nlimits: fp16-acc32.yaml\nnames: hf\nformat: markdown\n' >vernier.yaml
say capture ref --ids 1,2 -o deep/x.h5 --no-config
cd deep
say_lines note capture ref --ids-from ../ref.h5 --against ../ref.h5 -o x.h5
say_lines 'note|^perplexity' evaluate --ids 1,2,3 --decode 0 --candidate ref | sed '/^perp/s/   .*//'
say_lines 'note|^\| check' table ../ref.h5 ../cand.h5 --points logits --first 1
for form in text json html csv; do
	say_lines 'note' table ../ref.h5 ../cand.h5 --points logits --first 1 --format $form
done
for form in junit csv; do
	say_lines 'VERNIER_MODEL|vernier.yaml' compare ../ref.h5 ../cand.h5 --format $form
done
say_lines 'note' isolate --check true
say_lines 'note|from' isolate --ids-from ../ref.h5 --check 'cp ../cand.h5 out.h5' --check-recording out.h5 --format json
say_lines 'note|from' evaluate --ids 1,2,3 --decode 0 --candidate ref --format json
echo "== of a command that ends without a report, stderr names them"
for c in "table ../ref.h5 ../cand.h5" "compare ../ref.h5 ../cand.h5" "isolate --check true" \
	"evaluate --ids 1 --candidate ref"; do
	VERNIER_MODEL=nowhere say_lines 'vernier|note' $c
done
VERNIER_MODEL=$M say_lines 'note|limits of' calibrate ../ref.h5 ../cand.h5 -o l.yaml
cp ../cand.h5 again.h5
say_lines "^#|note" compare ../ref.h5 ../cand.h5 again.h5
say_lines note compare ../ref.h5 ../cand.h5 again.h5 --vote --format html --allow itself
printf 'version: 1\nformat: junit\n' >vernier.yaml
say_lines "^(all )?within|^note" compare ../ref.h5 ../cand.h5 again.h5
cd .. && rm deep/vernier.yaml
echo "== what is wrong in it"
printf 'version: 1\nmodle: x\n' >vernier.yaml
say compare ref.h5 cand.h5
say_lines '^project' doctor
say compare ref.h5 cand.h5 --no-config -q
printf 'version: 1\nmodel:\n' >vernier.yaml
say compare ref.h5 cand.h5
printf 'version: 1\nmodel: ~/models/qwen2\n' >vernier.yaml
HOME=$PWD notes compare ref.h5 cand.h5
for line in "model: nowhere" "limits: nowhere.yaml" "names: nobody"; do
	printf "version: 1\n$line\n" >vernier.yaml
	say_lines '^project' doctor
done
VERNIER_MODEL=nowhere vernier doctor | grep -o '^environment NO\|(VERNIER_MODEL is no model)'
printf 'version: 1\nformat: xlm\n' >vernier.yaml
say compare ref.h5 cand.h5
printf 'version: 1\nformat: json\n' >vernier.yaml
vernier compare ref.h5 cand.h5 | head -c 1 && echo
vernier compare ref.h5 cand.h5 --format text | grep -c '^verdict'
echo "== of another user it is not read"
if [ "$(id -u)" = 0 ]; then
	chown 12345 vernier.yaml
	say_lines 'vernier|^verdict' compare ref.h5 cand.h5
	say_lines '^project' doctor
	ln -sf nowhere vernier.yaml; chown -h 12345 vernier.yaml
	say_lines 'vernier|^verdict' compare ref.h5 cand.h5
else
	sed -n '/^== of another/,/^== doctor/{/^==/d;p}' "$TESTS/cli/project.expected" # only root can give a file away
fi
rm -f vernier.yaml
echo "== a link that leads nowhere, or in a circle, is no absent file"
ln -s nowhere vernier.yaml; say compare ref.h5 cand.h5 | grep -v -- --help
ln -sf vernier.yaml vernier.yaml; say compare ref.h5 cand.h5 | grep -v -- --help; rm vernier.yaml
echo "== doctor: one screen"
[ "$(vernier doctor | wc -l)" -le 24 ] && vernier doctor | awk '{print $1}'
echo "== --open"
printf '#!/bin/sh\necho "shown: $1"\n' >browser && chmod +x browser
BROWSER=$PWD/browser say compare ref.h5 cand.h5 --model "$M" -q -o page.html --open
BROWSER=nothing_here say compare ref.h5 cand.h5 --model "$M" -q -o page.html --force --open
say compare ref.h5 cand.h5 --open
echo "== a page on a terminal goes through the pager"
export TERM=xterm
paged() { script -qec "$1" /dev/null </dev/null | tr -d '\r' | head -n 1; }
export VERNIER_PAGER="tr a-z A-Z"
paged "$VERNIER help compare.md"
VERNIER_PAGER=cat paged "$VERNIER help compare.md"
VERNIER_PAGER=no_such_pager paged "$VERNIER help compare.md" | grep -c 'The report'
vernier help compare.md | head -n 1
echo "== and a report, whose exit status stays"
answer() { # COMMAND: its first line, behind its progress, and its status
	script -qec "$1" /dev/null </dev/null >terminal
	local status=$?
	tr -d '\r' <terminal | sed 's/.*\x1b\[K//' | head -n 1
	echo "[$status]"
}
vernier capture ref "$M" --ids 1,2,3,4 --inject R1@layer1 -o bad.h5 2>/dev/null
answer "$VERNIER compare ref.h5 bad.h5 --model $M"
answer "$VERNIER explain ref.h5 bad.h5 --model $M --no-pager"
answer "$VERNIER show ref.h5"
VERNIER_PAGER="head -n 2" answer "$VERNIER compare ref.h5 bad.h5 --model $M --all"
TERM=dumb answer "$VERNIER show ref.h5"
VERNIER_PAGER= answer "$VERNIER show ref.h5"
vernier show ref.h5 | head -n 1
echo "== a signal to the command alone ends the pager, too"
for s in SIGTERM SIGHUP; do timeout 60 $PYTHON "$TESTS/support/paged.py" $s "$VERNIER" show ref.h5; done
