# What may stand at a place of a command line: first the kind (nothing, words, list, files or
# either), then the words, each perhaps with a tab and a description. A row: command, word, kind of
# what follows the word, its words, description. No single quote here: a shell quotes this text.
# place: 1 for the command; of: the command; last: the word before; word: what is typed at the place
BEGIN { FS = "\t"; kind = "files"; if (place == 1) of = "" }
$1 == of && (word ~ /^-/ || (place == 1 && $2 !~ /^-/)) { names = names "\n" $2 ($5 == "" ? "" : "\t" $5) }
place == 2 ? $1 == "" && $2 == of : $1 == of && $2 == "" { kind = $3; values = $4 }
place > 1 && $1 == of && $2 == last && $3 != "" { taken = $3; values_taken = $4 }
END {
	if (taken != "") { kind = taken; values = values_taken }
	else if (names != "") { kind = "words" names; values = "" }
	print kind
	n = split(values, value, "|")
	for (i = 1; i <= n; i++) print value[i]
}
