_vernier() {
	local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]} before= found values
	# A value may follow an equals sign, which is a word of its own.
	if [ "$word" = = ]; then word=; elif [ "$last" = = ]; then last=${COMP_WORDS[COMP_CWORD-2]}; fi
	mapfile -t found < <(awk -v place="$COMP_CWORD" -v of="${COMP_WORDS[1]}" -v last="$last" -v word="$word" \
		"$_vernier_offer" <<<"$_vernier_rows")
	found=("${found[@]%%$'\t'*}")
	values=${found[*]:1} COMPREPLY=()
	# compopt fails where no key was pressed, as in a test.
	case ${found[0]} in
	files) return ;;
	either) COMPREPLY=($(compgen -W "$values" -- "$word"; compgen -f -- "$word")); compopt -o filenames 2>/dev/null ;;
	list) [[ $word != *,* ]] || before=${word%,*},
		COMPREPLY=($(compgen -P "$before" -W "$values" -- "${word##*,}")); compopt -o nospace +o default 2>/dev/null ;;
	*) COMPREPLY=($(compgen -W "$values" -- "$word")); compopt +o default 2>/dev/null ;;
	esac
}
complete -o default -F _vernier vernier
