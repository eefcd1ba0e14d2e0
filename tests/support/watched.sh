# watched.sh: sourced by scripts whose steps take minutes.
#
# watched [--show] TITLE COMMAND [ARGUMENT]...
#   Runs COMMAND with its output in a log. A terminal shows a changing line: the time so far and, if
#   the log counts ("[12/345]" of ninja, "12/345 Test" of ctest), the progress; of ninja also the
#   time left. A pipe gets a line a minute, which names the tests that ctest runs: it begins with
#   the longest, so its count does not tell the time left; with --show also the output itself.
#   Returns COMMAND's status; when that is not 0, the end of the log is printed.
#
# job_start [--show] COMMAND [ARGUMENT]...
#   Begins COMMAND in the background, and sets `job` to words that name it for the following two.
# job_end [--show] TITLE JOB
#   Waits for it, as `watched` does.
# job_stop JOB
#   Ends it, if it still runs, with all that it began.
#
# A job tells its exit status through a named pipe. `wait PID` would not do: Bash forgets the status
# of a job that has ended once it begins a process with the same number, and a build begins more
# processes than there are numbers (32,768). For the same reason nothing is asked of, or sent to, a
# number whose process may have ended.

# ", 12 of 345, about 40 s left" from the last count in the log; nothing where it does not count.
watched_count() { # log, seconds so far
	tail -c 4000 "$1" | tr '\r' '\n' |
		sed -nE 's#^\[([0-9]+)/([0-9]+)\].*#\1 \2 left#p; s#^ *([0-9]+)/([0-9]+) Test.*#\1 \2#p' | tail -n 1 |
		{
			read -r n all left && [ "$n" -gt 0 ] &&
				echo ", $n of $all${left:+, about $(($2 * (all - n) / n)) s left}"
		} || true
}

# "; test_a, test_b running": the tests that ctest has begun and not ended.
watched_running() { # log
	tr '\r' '\n' <"$1" | awk '
		$1 == "Start" && NF == 3 { begun[$3] = 1 }
		$2 == "Test" { for (i = 3; i < NF; i++) if ($i ~ /^#[0-9]*:$/) delete begun[$(i + 1)] }
		END { for (name in begun) said = said (said ? ", " : "; ") name; if (said) printf "%s running", said }'
}

job_start() {
	local show= folder pid end told
	[ "$1" = --show ] && { show=1; shift; }
	folder=$(mktemp -d)
	mkfifo "$folder/end"
	exec {told}<>"$folder/end" {end}<"$folder/end"
	: >"$folder/log"
	set -m # a group of its own, which an interruption ends
	{
		status=0
		if [ -n "$show" ] && [ ! -t 1 ]; then
			(set -o pipefail; "$@" 2>&1 | tee "$folder/log") {told}>&- || status=$?
		else
			("$@") >"$folder/log" 2>&1 {told}>&- || status=$?
		fi
		echo "$status" >&"$told"
	} </dev/null &
	pid=$!
	set +m
	exec {told}>&- # the job alone holds the other end
	job="$folder $pid $end"
}

job_stop() {
	local folder pid end
	read -r folder pid end <<<"$1"
	# Something to read, or the end of the pipe: it runs no more.
	read -r -t 0 -u "$end" || kill -- "-$pid" 2>/dev/null || true
	exec {end}<&-
	rm -rf "$folder"
}

job_end() {
	local show= title folder end started=$SECONDS told=$SECONDS tick=0 pause=0.5 status= part= read=0 spin='|/-\' now
	[ "$1" = --show ] && { show=1; shift; }
	title=$1 job=$2
	read -r folder _ end <<<"$job"
	[ ! -t 1 ] || pause=0.2
	trap 'job_stop "$job"; exit 130' INT TERM
	while
		read -r -t "$pause" -u "$end" part || read=$?
		status+=$part # a read that ends for time may have taken the first digit
		[ "$read" -gt 128 ] # nothing for that long
	do
		read=0
		now=$((SECONDS - started))
		if [ -t 1 ]; then
			printf '\r\033[K%s %s: %d s%s' "${spin:tick++ % 4:1}" "$title" "$now" \
				"$(watched_count "$folder/log" "$now")"
		elif [ $((SECONDS - told)) -ge 60 ]; then
			told=$SECONDS
			echo "$title: $now s$(watched_count "$folder/log" "$now")$(watched_running "$folder/log")"
		fi
	done
	trap - INT TERM
	[ ! -t 1 ] || printf '\r\033[K'
	if [ "$status" = 0 ]; then
		echo "$title: $((SECONDS - started)) s"
	else
		if [ -z "$show" ] || [ -t 1 ]; then
			tail -n 40 "$folder/log"
		fi
		echo "$title: failed after $((SECONDS - started)) s (${status:+exit status }${status:-killed})" >&2
	fi
	exec {end}<&-
	rm -rf "$folder"
	return "${status:-137}"
}

watched() {
	local show= title job
	[ "$1" = --show ] && { show=--show; shift; }
	title=$1
	shift
	job_start $show "$@"
	job_end $show "$title" "$job"
}
