# shellcheck shell=bash
# fill.sh: sourced by release.sh. fill OWNER VERSION SHA256 FILE...: writes these into files.
fill() {
	local owner=$1 version=$2 digest=$3
	shift 3
	sed -i "s/ *# OWNER: .*//; s#\bOWNER/vernier#$owner/vernier#g; s/@VERSION@/$version/g; s/@SHA256@/$digest/g" "$@"
}
