#!/usr/bin/env bash
# compare.sh: the step of action.yml. Its inputs are variables of the environment (REFERENCE,
# CANDIDATE, MODEL, FLOOR, LIMITS, BASELINE, OPTIONS); it adds the Markdown report to
# $GITHUB_STEP_SUMMARY, names the folder of the reports in $GITHUB_OUTPUT, and ends with the status
# of `vernier compare`.
set -uo pipefail
reports=$(mktemp -d "${RUNNER_TEMP:-/tmp}/vernier-report.XXXXXX") || exit 2
summary=${GITHUB_STEP_SUMMARY:-/dev/stdout} output=${GITHUB_OUTPUT:-/dev/null}

words=("$REFERENCE" "$CANDIDATE")
for option in model floor limits baseline; do
	name=${option^^}
	[ -z "${!name:-}" ] || words+=("--$option" "${!name}")
done
while IFS= read -r line; do
	[ -z "$line" ] || words+=("$line")
done <<<"${OPTIONS:-}"

vernier compare "${words[@]}" -q -o "$reports/report.md" -o "$reports/report.html" -o "$reports/report.json" \
	2>"$reports/log.txt"
status=$?
cat "$reports/log.txt" >&2
echo "status=$status" >>"$output"
shopt -s nullglob
pages=("$reports"/report*.md) # of two folders one for each pair
if [ ${#pages[@]} -gt 0 ]; then
	echo "reports=$reports" >>"$output"
	cat "${pages[@]}" >>"$summary"
else
	{
		echo '### vernier: not compared'
		echo
		sed 's/^/    /' "$reports/log.txt"
	} >>"$summary"
fi
exit $status
