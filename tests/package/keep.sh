# shellcheck shell=bash
# keep.sh: sourced by release.sh, wheel.sh, packages.sh and aarch64.sh.
# keep FOLDER...: makes folders that stay for the next run. Nobody else wrote into them (anybody may
# make a folder in /var/tmp), and until this run ends no other one uses the last of them.
keep() {
	local folder
	for folder; do
		mkdir -p "$folder"
		[ -O "$folder" ] && [ ! -L "$folder" ] || fail "$folder is another user's, or a link"
		exec 9<"$folder"
	done
	flock -n 9 || fail "another run uses $folder"
}
