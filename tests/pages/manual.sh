#!/usr/bin/env bash
# manual.sh [--write] VERNIER: the sections of compare/vernier.1 say what the program says.
#
# The manual has a section for each command:
#
#	.\" section of COMMAND
#	...
#	.\" end of section
#
# Each is what `vernier help --man COMMAND` prints; --write rewrites them. What the help of a
# command has no room for follows its section.
set -eu
page=$(dirname "$0")/../../compare/vernier.1
write=
[ "$1" = --write ] && { write=1; shift; }
vernier=$1
[ -x "$vernier" ]
made=$(mktemp)
trap 'rm -f "$made"' EXIT
commands=0
while IFS= read -r line; do
	case $line in
	'.\" section of '*)
		command=${line#'.\" section of '}
		printf '%s\n' "$line"
		if ! "$vernier" help --man "$command" >/dev/null 2>&1; then # as devices, in a build without Vulkan
			continue
		fi
		"$vernier" help --man "$command"
		while IFS= read -r line && [ "$line" != '.\" end of section' ]; do :; done
		;;
	esac
	printf '%s\n' "$line"
done <"$page" >"$made"
if [ -n "$write" ]; then
	cp "$made" "$page"
fi
diff "$page" "$made" || { echo "write them anew: tests/pages/manual.sh --write $vernier"; exit 1; }
for command in $("$vernier" help | sed -n 's/^  \([a-z]*\)  .*/\1/p') help version; do
	grep -qFx ".\\\" section of $command" "$page" || { echo "no section of $command in $page"; exit 1; }
	listed=$command
	[ "$command" = explain ] && listed=compare # has its options, and its list of them
	"$vernier" help --man "$listed" >"$made"
	for option in $("$vernier" "$command" --help | sed '/^$/q' | grep -o -- '--[a-z-]*' | sort -u); do
		grep -q "^\\\\fB\(-.\\\\fR, \\\\fB\)*$option\\\\fR" "$made" ||
			{ echo "usage of $command: $option is not in its table"; exit 1; }
	done
	commands=$((commands + 1))
done
[ "$commands" -gt 0 ]

# A page is printed without what is for the source alone, from a build tree too.
"$vernier" help usage.md >"$made"
grep -q '^# Using vernier$' "$made" && ! grep -q '<!--' "$made" ||
	{ echo "help usage.md: $(grep '<!--' "$made")"; exit 1; }

complete() { :; }
. <("$vernier" help --completions bash)
# what is typed, what is offered
offers() {
	read -ra COMP_WORDS <<<"$1"
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	_vernier || true # compgen fails where it finds nothing
	[ "${COMPREPLY[*]}" = "$2" ] || { echo "'$1' is completed by '${COMPREPLY[*]}', not by '$2'"; exit 1; }
}
offers "vernier calib" calibrate
offers "vernier compare --floo" "--floor --floor-precision"
offers "vernier weights --format j" json
offers "vernier weights fixtures" ""
echo "the manual has the sections of $commands commands"
