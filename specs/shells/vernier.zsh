_vernier() {
	local word=$words[CURRENT] last=$words[CURRENT-1] kind
	local -a found after
	if [[ $word = --*=* ]]; then # a value may follow an equals sign
		last=${word%%=*} word=
		compset -P '*='
	fi
	found=("${(@f)$(awk -v place=$((CURRENT - 1)) -v of=$words[2] -v last=$last -v word=$word \
		$_vernier_offer <<<$_vernier_rows)}")
	kind=$found[1]
	shift found
	found=("${(@)found/$'\t'/:}")
	[[ $kind != list ]] || { compset -P '*,'; after=(-qS ,); }
	(( ! $#found )) || _describe word found $after
	[[ $kind != (files|either) ]] || _files
}
_vernier "$@"
