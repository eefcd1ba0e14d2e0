#!/usr/bin/env bash
# format.sh: no line of code is longer than 120 columns (a tab counts 4), no line that is a comment
# longer than 100; every C file is as .clang-format writes it. The latter is skipped (77) without
# clang-format 14: other versions format differently. To format the tree:
# git ls-files '*.c' '*.h' | xargs clang-format-14 -i
set -u
cd "$(dirname "$0")/.."
kinds='c|h|inc|cpp|def|comp|glsl|cmake|sh|py|yaml|js|css|html'
long=$(find CMakeLists.txt .github libref libgpu capture compare specs fixtures tests -type f |
	grep -E "\.($kinds)\$|(^|/)CMakeLists\.txt\$" | sort |
	xargs perl -CSD -ne 'chomp; 1 while s/^([^\t]*)\t/$1 . " " x (4 - length($1) % 4)/e;
		$mark = $ARGV =~ /\.(py|sh|cmake|txt|yaml)$/ ? "#" : "/?\\*|//";
		$most = m{^\s*($mark)\s} && !m{\*/\s*\S} ? 100 : 120; # code may follow a comment
		print "$ARGV:$.: ", length, " columns\n" if length > $most; close ARGV if eof' 2>&1)
if [ -n "$long" ]; then
	echo "lines of more than 120 columns, or of more than 100 in a comment on lines of its own:"
	echo "$long"
	exit 1
fi
# No line of prose in a page is longer than 100. Prose: all but front matter, tables, code (fenced,
# or 4 columns in after an empty line) and lines that are a single link or word.
long=$(find README.md .github libref libgpu capture compare specs fixtures tests -name "*.md" | sort |
	xargs perl -CSD -ne 'chomp; ($fence, $code, $front, $before) = (0, 0, $_ eq "---", "") if $. == 1;
		$front = 0 if $front && $. > 1 && $_ eq "---";
		$fence = !$fence if /^\s*```/;
		$code = /^ {4}/ && ($code || $before eq "") || $code && $_ eq "" unless $fence;
		$before = $_;
		print "$ARGV:$.: ", length, " columns\n" if length > 100 && !$fence && !$code && !$front && !/^\s*\|/ &&
			!/^\s*([-*]|\d+\.)?\s*(\[[^\]]*\]\(\S*\)|\S+)\s*$/;
		close ARGV if eof' 2>&1)
if [ -n "$long" ]; then
	echo "lines of prose of more than 100 columns:"
	echo "$long"
	exit 1
fi
format=
for program in clang-format-14 clang-format; do
	if "$program" --version 2>/dev/null | grep -q 'version 14\.'; then
		format=$program
		break
	fi
done
if [ -z "$format" ]; then
	echo "skipped: clang-format 14 is not installed"
	exit 77
fi
files=$(find libref libgpu capture compare fixtures tests -name '*.[ch]' | sort)
[ -n "$files" ] || { echo "no C files found"; exit 1; }
said=$(echo "$files" | xargs -n 100 "$format" --dry-run --Werror 2>&1)
bad=$(echo "$said" | sed -n 's/^\([^:]*\.[ch]\):[0-9]*:[0-9]*: error:.*/\1/p' | sort -u)
if [ -n "$bad" ]; then
	echo "not formatted; type: $format -i" $bad
	exit 1
fi
[ -z "$said" ] || { echo "$said"; exit 1; }
echo "$(echo "$files" | wc -l) files are formatted"
