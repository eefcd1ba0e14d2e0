# watched.sh: sourced by scripts whose steps take minutes.
#
# watched [--show] TITLE COMMAND [ARGUMENT]...
#   Runs COMMAND with its output in a log. A terminal shows a changing line: the time so far and, if
#   the log counts ("[12/345]" of ninja, "12/345 Test" of ctest), the progress; of ninja also the
#   time left. ctest begins with the longest tests, so its count does not tell the time left. A pipe
#   gets a line a minute; with --show also the output itself. Returns COMMAND's status; when that is
#   not 0, the end of the log is printed.

# ", 12 of 345, about 40 s left" from the last count in the log; nothing where it does not count.
watched_count() { # log, seconds so far
	tail -c 4000 "$1" | tr '\r' '\n' |
		sed -nE 's#^\[([0-9]+)/([0-9]+)\].*#\1 \2 left#p; s#^ *([0-9]+)/([0-9]+) Test.*#\1 \2#p' | tail -n 1 |
		{
			read -r n all left && [ "$n" -gt 0 ] &&
				echo ", $n of $all${left:+, about $(($2 * (all - n) / n)) s left}"
		} || true
}

watched() {
	local show= title log started=$SECONDS told=$SECONDS tick=0 status=0 pid spin='|/-\' now
	[ "$1" = --show ] && { show=1; shift; }
	title=$1
	shift
	log=$(mktemp)
	set -m # a group of its own, which an interruption ends
	if [ -n "$show" ] && [ ! -t 1 ]; then
		(set -o pipefail; "$@" 2>&1 </dev/null | tee "$log") &
	else
		"$@" >"$log" 2>&1 </dev/null &
	fi
	pid=$!
	set +m
	trap 'kill -- "-$pid" 2>/dev/null; rm -f "$log"; exit 130' INT TERM
	while kill -0 "$pid" 2>/dev/null; do
		now=$((SECONDS - started))
		if [ -t 1 ]; then
			printf '\r\033[K%s %s: %d s%s' "${spin:tick++ % 4:1}" "$title" "$now" "$(watched_count "$log" "$now")"
			sleep 0.2
		else
			[ $((SECONDS - told)) -lt 60 ] || { told=$SECONDS; echo "$title: $now s$(watched_count "$log" "$now")"; }
			sleep 0.5
		fi
	done
	wait "$pid" || status=$?
	trap - INT TERM
	[ ! -t 1 ] || printf '\r\033[K'
	if [ "$status" != 0 ] && { [ -z "$show" ] || [ -t 1 ]; }; then
		tail -n 40 "$log"
		echo "$title: failed after $((SECONDS - started)) s (exit status $status)" >&2
	else
		echo "$title: $((SECONDS - started)) s"
	fi
	rm -f "$log"
	return "$status"
}
