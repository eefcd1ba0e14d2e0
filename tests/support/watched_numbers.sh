#!/usr/bin/env bash
# watched_numbers.sh: what watched.sh tells of a job is right although another process got the job's
# number meanwhile, as happens when more processes begin than there are numbers. Runs in a namespace
# of its own, in which the number of the next process can be chosen; skipped where there is none.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ "${1:-}" != inside ]; then
	for user in -r ''; do # without privileges; as root where user namespaces are refused, as in a chroot
		# shellcheck disable=SC2086
		unshare $user --pid --fork bash -c 'echo 9 >/proc/sys/kernel/ns_last_pid' 2>/dev/null &&
			exec unshare $user --pid --fork --kill-child bash "$0" inside
	done
	echo "no namespace of process numbers here (unshare --pid)"
	exit 77
fi
. "$here/watched.sh"
fail() { echo "watched_numbers.sh: $*" >&2; exit 1; }
number() { read -r _ number _ <<<"$1"; }
await() { while kill -0 "$1" 2>/dev/null; do sleep 0.01; done; }
again() { # NUMBER COMMAND...: the next process has this number
	echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid
	"${@:2}" &
	[ $! = "$1" ] || fail "the next process is $!, not $1"
}
says() { # STATUS, WORDS, what has been said
	[ "$1" = "$status" ] && [[ $said == $2 ]] || fail "status $status; expected $1 and '$2': $said"
}
ends() { status=0; said=$(job_end "$@" 2>&1) || status=$?; }

# What this is about: Bash forgets (127), or tells the other's status (0).
(exit 3) & known=$!
await $known
again $known true
status=0
wait $known 2>/dev/null || status=$?
[ $status != 3 ] || echo "this Bash remembers the status of a job whose number was used again"

# A job's status is its own, whoever has its number now, and although that runs.
for expected in 0 3; do
	job_start bash -c "echo 'the reason'; exit $expected"
	number "$job"
	await "$number"
	again "$number" sleep 30
	ends working "$job"
	case $expected in
	0) says 0 'working: 0 s' ;;
	3) says 3 $'the reason\nworking: failed after 0 s (exit status 3)' ;;
	esac
	kill -0 "$number" || fail "the other process is gone"
done
# One that is killed has none; nobody waits for whoever has its number.
job_start sleep 30
number "$job"
kill -9 -- "-$number"
await "$number"
again "$number" sleep 30
ends working "$job"
says 137 'working: failed after ? s (killed)'
# The end of one that has ended ends no group of the same number.
job_start true
number "$job"
await "$number"
set -m
again "$number" sleep 30
set +m
job_stop "$job"
sleep 0.1
kill -0 "$number" || fail "a group that is not the job's was ended"
# One that runs is ended with all that it began.
job_start bash -c 'sleep 30 & sleep 30'
number "$job"
sleep 0.2
job_stop "$job"
for ((i = 0; i < 500; i++)); do
	kill -0 -- "-$number" 2>/dev/null || break
	sleep 0.01
done
[ $i -lt 500 ] || fail "a job outlives job_stop"
# A status whose digits come one after the other is told whole, also when a wait ends between them.
folder=$(mktemp -d)
mkfifo "$folder/end"
: >"$folder/log"
{ printf 1; sleep 0.8; echo 0; } >"$folder/end" &
exec {end}<"$folder/end"
ends building "$folder $! $end"
says 10 'building: failed after ? s (exit status 10)'
echo "jobs are told from those that have their numbers later"
