#!/usr/bin/env bash
# release.sh [-o FOLDER] [--with wheel|deb|aarch64]... [--build FOLDER] [--roots FOLDER]: makes what
# a release of the version in CMakeLists.txt consists of, and checks it. -o FOLDER
# (build/release-files) then has
#
#   vernier-V.tar.gz               the commit, with the word of .github/packaging/owner
#   vernier-V-linux-ARCH.tar.gz    program, manual, libraries (shared and static), headers
#   vernier_parity-V.tar.gz        the recorder for Python, as a source distribution
#   vernier.rb, recipe.yaml        for Homebrew and conda, with the checksum of the source
#   vernier-V.cdx.json             the libraries that it is built with (SBOM, CycloneDX 1.5)
#   CHANGES-V.md                   the commits since the last tag, by area; at first, their number
#   SHA256SUMS
#   *.whl, *_debian.deb, *_ubuntu.deb --with wheel, --with deb: by wheel.sh, packages.sh, as root
#   vernier-V-linux-aarch64.tar.gz --with aarch64: by aarch64.sh, and a wheel
#
# --build: a build folder (default: build/release), whose program is brought up to date and
# installed. --roots: where wheel.sh, packages.sh and aarch64.sh keep their roots (default:
# /var/tmp/vernier-*), 8 GB. The files that --with makes are kept there, too, in parts: the next run
# of the same commit with the same tools takes unchanged ones, so after a failure the same command
# goes on with the part that failed. (Remove parts to make all again.) They are made of a clone: the
# tree may change meanwhile. Nothing is published: .github/workflows/release.yml does that, for a
# tag. Exit status 0: every file is there, and works.
set -euo pipefail
cd "$(dirname "$0")/../.."
line=$(printf '%q ' "$0" "$@")
out=build/release-files build=build/release roots=/var/tmp/vernier- more=
while [ $# -gt 0 ]; do
	case $1 in
	-o) out=${2:?-o FOLDER}; shift ;;
	--build) build=${2:?--build FOLDER}; shift ;;
	--roots) roots=$(realpath -m "${2:?--roots FOLDER}")/; shift ;;
	--with)
		[[ ${2-} =~ ^(wheel|deb|aarch64)$ ]] || { echo "release.sh: --with takes wheel, deb or aarch64" >&2; exit 2; }
		[ "$2" != deb ] || set -- "$1" 'debian ubuntu' "${@:3}"
		more="$more $2"
		shift
		;;
	*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
	esac
	shift
done
fail() { echo "release.sh: $*" >&2; exit 1; }
. tests/package/fill.sh
. tests/package/keep.sh
python=${PYTHON:-python3} owner=$(cat .github/packaging/owner)
[ "$owner" != OWNER ] || echo "release.sh: .github/packaging/owner names nobody yet: OWNER stays" >&2
version=$(sed -n 's/^project(vernier VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
[ -n "$version" ] || fail "CMakeLists.txt: no version"
grep -qxF "version = \"$version\"" capture/python/pyproject.toml ||
	fail "pyproject.toml has another version than $version"
[ -z "$(git status --porcelain --untracked-files=no)" ] || fail "files differ from the commit: commit them first"
name=vernier-$version arch=$(uname -m) head=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd) build=$(cd "$build" && pwd)
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
pack() { # FOLDER: the same bytes each time
	tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$1" | gzip -n
}

echo "== the source"
git archive --prefix="$name/" HEAD | tar -C "$work" -xf -
fill "$owner" "$version" @SHA256@ "$work/$name"/{README.md,specs/usage.md,.github/packaging/{vernier.rb,recipe.yaml}}
pack "$name" >"$out/$name.tar.gz"
cp .github/packaging/{vernier.rb,recipe.yaml} "$out"
fill "$owner" "$version" "$(sha256sum "$out/$name.tar.gz" | cut -d' ' -f1)" "$out"/{vernier.rb,recipe.yaml}
if command -v ruby >/dev/null; then
	ruby -c "$out/vernier.rb" >/dev/null || fail "vernier.rb is not Ruby"
else
	echo "vernier.rb: not checked: no ruby"
fi
tar -tzf "$out/$name.tar.gz" | sed -n "s#^$name/\(.*[^/]\)\$#\1#p" | sort >"$work/packed"
git ls-files | sort | diff - "$work/packed" >/dev/null || fail "the archive of the source lacks files of the commit"

echo "== program and libraries"
cmake --build "$build" --target vernier vernier_capture vernier_capture_static printed >"$work/built" ||
	fail "$build: $(tail -n 40 "$work/built")"
cmake --install "$build" --prefix "$work/$name-linux-$arch" --strip >/dev/null
[ "$owner" = OWNER ] || ! grep -r OWNER/vernier "$work/$name-linux-$arch/share" || fail "not of $owner: build it again"
pack "$name-linux-$arch" >"$out/$name-linux-$arch.tar.gz"
mkdir "$work/try"
tar -C "$work/try" -xzf "$out/$name-linux-$arch.tar.gz"
vernier=$work/try/$name-linux-$arch/bin/vernier
[ "$("$vernier" version)" = "vernier $version" ] || fail "the program is not of version $version"
model=$PWD/fixtures/qwen2-trained ids=@$PWD/fixtures/prompts/p017.ids
(
	cd "$work/try"
	"$vernier" capture ref "$model" --ids "$ids" -o ref.h5 2>/dev/null
	"$vernier" capture ref "$model" --ids-from ref.h5 --precision f16 -o good.h5 2>/dev/null
	"$vernier" capture ref "$model" --ids-from ref.h5 --precision f16 --inject 'R2.1e4@layer1.*' -o bad.h5 2>/dev/null
	"$vernier" compare ref.h5 good.h5 --model "$model" -q || fail "a correct run is outside"
	"$vernier" explain ref.h5 bad.h5 --model "$model" >said || [ $? = 1 ]
	grep -q '^explained .*R2\.1e4' said || fail "a mistake is not named"
)
find "$work/try/$name-linux-$arch" -name libvernier-capture.a | grep -q . || fail "no static library"

echo "== the recorder for Python"
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check build scikit-build-core h5py numpy xxhash py-rattler-build
"$work/venv/bin/python" - "$out/recipe.yaml" "$version" <<'P' || fail "recipe.yaml is not what rattler-build reads"
import sys
from rattler_build import RenderConfig, Stage0Recipe, VariantConfig

with open(sys.argv[1], encoding="utf-8") as f:
    recipe = Stage0Recipe.from_yaml(f.read())
compilers = VariantConfig.from_yaml("c_compiler: [gcc]\nc_stdlib: [sysroot]\n")
made = [x.recipe.package for x in recipe.render(compilers, RenderConfig())]
assert [(str(p.name), str(p.version)) for p in made] == [("vernier", sys.argv[2])], made
P
"$work/venv/bin/python" -m build -q --sdist --no-isolation -o "$out" capture/python >/dev/null
mkdir "$work/bin" # no compiler, and no index
for tool in env rm cat bash sh uname; do ln -s "$(command -v $tool)" "$work/bin/"; done
(
	cd "$work/try"
	PATH=$work/venv/bin:$work/bin
	! command -v cc gcc clang cmake >/dev/null || fail "a compiler is in the way"
	pip install -q --disable-pip-version-check --no-index --no-build-isolation "$out/vernier_parity-$version.tar.gz"
	python -c 'import vernier_parity as v
with v.open("ref.h5") as ref, v.Recorder("own.h5", engine="mine", precision="f32", token_ids=[5, 6]) as rec:
    rec.put("layer0.q_rope", ref["layer0.q_rope"][:2], dims="token head dim")' || fail "the recorder does not record"
	vernier --version 2>said && fail "a program came from nowhere"
	[[ $(cat said) == *'build the program'* ]] || fail "no word on where the program is: $(cat said)"
	for command in vernier vernier-parity; do
		[ "$(PATH=$PATH:${vernier%/*} $command version)" = "vernier $version" ] ||
			fail "$command misses the program of the PATH"
	done
)
"$vernier" show "$work/try/own.h5" | grep -q 'complete; 1 tensor$' || fail "the recorder's file"

echo "== what it is built with"
"$python" - "$version" >"$out/$name.cdx.json" <<'P'
import json, subprocess, sys

LIBRARIES = {"hdf5": "BSD-3-Clause", "openblas": "BSD-3-Clause", "yaml-0.1": "MIT", "libzip": "BSD-3-Clause",
             "libseccomp": "LGPL-2.1-only", "jansson": "MIT", "libxxhash": "BSD-2-Clause", "libpcre2-8": "BSD-3-Clause",
             "vulkan": "Apache-2.0"}


def version_of(name):
    for one in (name, name + "-serial"):
        said = subprocess.run(["pkg-config", "--modversion", one], capture_output=True, text=True, check=False)
        if said.returncode == 0:
            return said.stdout.strip()
    return None


def unistring():
    """libunistring has no pkg-config file: 0x010000 of its header is 1.0.0."""
    said = subprocess.run(["cc", "-E", "-P", "-"], input="#include <unistring/version.h>\n_LIBUNISTRING_VERSION\n",
                          capture_output=True, text=True, check=True)
    number = int(said.stdout.split()[-1], 16)
    return f"{number >> 16}.{number >> 8 & 255}.{number & 255}"


found = {name: (version_of(name), license) for name, license in LIBRARIES.items()}
found["libunistring"] = unistring(), "LGPL-3.0-or-later"
parts = [{"type": "library", "name": name, "version": version, "licenses": [{"license": {"id": license}}]}
         for name, (version, license) in sorted(found.items()) if version]
json.dump({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
           "metadata": {"component": {"type": "application", "name": "vernier", "version": sys.argv[1],
                                      "licenses": [{"license": {"id": "Apache-2.0"}}]}},
           "components": parts}, sys.stdout, indent=1)
if len(parts) < len(found) - 1:  # a build may be without Vulkan
    sys.exit(f"only {len(parts)} of {len(found)} libraries have a version here")
P

echo "== what is new"
last=$(git describe --tags --abbrev=0 2>/dev/null || true)
{
	echo "# vernier $version"
	if [ "$last" ]; then
		git log --no-merges --format=%s "$last"..HEAD | LC_ALL=C sort -t: -k1,1 -s |
			awk -F': ' 'NF < 2 { next }
				$1 != area { area = $1; printf "\n## %s\n\n", area }
				{ sub(/^[^:]*: /, ""); print "- " $0 }'
	else
		printf '\nThe first release, of %s commits; most are of:\n\n' "$(git rev-list --count HEAD)"
		git log --no-merges --format=%s | sed -n 's/: .*//p' | LC_ALL=C sort | uniq -c | sort -rn | awk 'NR <= 20' |
			sed 's/ *\([0-9]*\) \(.*\)/- \2: \1/'
	fi
} >"$out/CHANGES-$version.md"
grep -q '^- ' "$out/CHANGES-$version.md" || fail "no commit since ${last:-the beginning}"
[ "$(wc -m <"$out/CHANGES-$version.md")" -lt 125000 ] || fail "CHANGES-$version.md is longer than GitHub takes"

[ "$head" = "$(git rev-parse HEAD)" ] && [ -z "$(git status --porcelain --untracked-files=no)" ] ||
	fail "the tree changed while it was packed"

# ---- what takes long: each part by itself, of a clone; once for a commit ------------------------
if [ "$more" ]; then
	keep "${roots}parts"
	tree=${roots}parts/tree
	git init -q "$tree" # not a clone, which git refuses of another user's repository
	git rev-parse --path-format=absolute --git-path objects >"$tree/.git/objects/info/alternates"
	git --git-dir="$tree/.git" --work-tree="$tree" checkout -q --detach --force "$head"
	git --git-dir="$tree/.git" --work-tree="$tree" clean -qfdx
fi
make_part() { # PART FOLDER: its files
	case $1 in
	wheel) "$tree/capture/python/wheel.sh" -o "$2" --root "${roots}wheel" ;;
	debian | ubuntu)
		"$tree/tests/package/packages.sh" -o "$2" --roots "${roots}packages" "$1"
		for file in "$2/$1"/*.deb; do # a release is one folder: GitHub's files have no other names
			mv "$file" "$2/$(basename "$file" .deb)_$1.deb"
		done
		rmdir "$2/$1"
		;;
	aarch64) "$tree/tests/package/aarch64.sh" -o "$2" --root "${roots}aarch64" --x86 "$vernier" ;;
	esac
}
mark() { # PART: what it was made of and with, and its files
	echo "$head"
	case $1 in
	wheel) stat -c %y "${roots}wheel/.libraries" ;;
	debian | ubuntu) stat -c %y "${roots}packages/$1.bare/.done" ;;
	aarch64)
		aarch64-linux-gnu-gcc --version
		qemu-aarch64-static --version
		stat -c %y "${roots}aarch64/.libraries"
		;;
	esac
	cd "${roots}parts/$1" && sha256sum -- *
}
failed=
for part in $more; do
	folder=${roots}parts/$part
	if (mark "$part") 2>&1 | cmp -s - "$folder.made"; then
		echo "== $part: already made of this commit"
		cp "$folder"/* "$out/"
		continue
	fi
	echo "== $part"
	SECONDS=0
	rm -rf "$folder" "$folder.made"
	mkdir "$folder"
	set +e # `if`, and `||`, would take -e from what they run
	(set -e; make_part "$part" "$folder") 2>&1 | tee "$folder.log"
	status=${PIPESTATUS[0]}
	set -e
	echo "== $part: exit status $status after $SECONDS s"
	if [ $status != 0 ]; then
		failed="$failed $part"
		continue
	fi
	cp "$folder"/* "$out/"
	(mark "$part") >"$folder.made"
done
if [ "$failed" ]; then
	for part in $failed; do
		echo "release.sh: $part failed; the end of ${roots}parts/$part.log:" >&2
		tail -n 5 "${roots}parts/$part.log" | sed 's/^/  /' >&2
	done
	fail "to go on with$failed: $line"
fi
[ -z "$(find "$out" -mindepth 1 -type d)" ] || fail "a release has no folders: $(find "$out" -mindepth 1 -type d)"
(cd "$out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum >SHA256SUMS &&
	sha256sum -c --quiet SHA256SUMS)
if compgen -G "$out/*.whl" >/dev/null; then # release.yml divides them: wheels and the source distribution for PyPI
	cp -r "$out" "$work/files"
	step=$(sed -n 's/^ *- run: \(mkdir pypi .*\)/\1/p' .github/workflows/release.yml)
	(cd "$work" && eval "$step" &&
		[ "$(find pypi -type f ! -name '*.whl' -printf '%P')" = "vernier_parity-$version.tar.gz" ]) ||
		fail "release.yml gives PyPI other files than the wheels and the source distribution"
fi
ls -sh "$out"
