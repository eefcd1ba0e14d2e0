function __vernier
	set -l typed (commandline -opc)
	set -l word (commandline -ct)
	set -l last $typed[-1]
	set -l before ''
	if string match -qr '^--[^=]*=' -- $word # a value may follow an equals sign
		set before (string replace -r '=.*' '=' -- $word)
		set last (string replace = '' -- $before)
		set word (string replace -r '^[^=]*=' '' -- $word)
	end
	set -l found (string split \n -- $_vernier_rows | awk -v place=(count $typed) -v of="$typed[2]" -v last="$last" \
		-v word="$word" $_vernier_offer)
	switch $found[1]
		case list
			set before $before(string replace -r '[^,]*$' '' -- $word)
		case files either
			set -a found (__fish_complete_path $word)
	end
	for one in $found[2..]
		echo $before$one
	end
end
complete -c vernier -f -a '(__vernier)'
