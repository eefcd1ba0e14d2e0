#!/usr/bin/env bash
# packages.sh [-o FOLDER] [--roots FOLDER] [debian|ubuntu]...: makes the Debian packages for
# Debian 12 and Ubuntu 24.04 and tries them: lintian finds no error in them; in a root that holds
# nothing else `vernier` installs, names a mistake, and says what is missing for a GPU; an outside
# program builds with libvernier-capture-dev, shared and static.
#
# Each release has packages of its own, since libunistring (2, 5), HDF5 and libzip have other names.
# Needs root, debootstrap, and access to both archives. The roots are kept in FOLDER (default:
# /var/tmp/vernier-packages), 2 GB each.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=build roots=/var/tmp/vernier-packages systems=
while [ $# -gt 0 ]; do
	case $1 in
	-o) out=${2:?-o FOLDER}; shift ;;
	--roots) roots=${2:?--roots FOLDER}; shift ;;
	debian | ubuntu) systems="$systems $1" ;;
	*) sed -n '2,/^#$/s/^# //p' "$0" >&2; exit 2 ;;
	esac
	shift
done
fail() { echo "packages.sh: $*" >&2; exit 1; }
. tests/package/keep.sh
[ "$(id -u)" = 0 ] || fail "a root folder with another system can be made by root only"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"

# Runs the script on standard input in a root.
inside() { # ROOT
	unshare --mount bash -c 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$@"' - "$1" \
		env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive \
		bash -euo pipefail -s 9<&-
}
bare() { # SYSTEM ROOT: nothing but the release
	case $1 in
	debian) debootstrap --variant=minbase bookworm "$2" >/dev/null ;;
	ubuntu) # Debian lacks its script, which is the same for all since 2007, and sometimes its keys
		local script=/usr/share/debootstrap/scripts/noble keys=
		[ -e $script ] || script=/usr/share/debootstrap/scripts/gutsy
		# Without the keys, debootstrap would ask Debian's archive for Ubuntu.
		[ -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ] ||
			{ keys=--no-check-gpg; echo "ubuntu-archive-keyring.gpg is missing: the root is not verified"; }
		debootstrap $keys --variant=minbase --components=main,universe noble "$2" "" $script >/dev/null ;;
	esac
}
keep "$roots"
for system in ${systems:-debian ubuntu}; do
	echo "== $system"
	root=$roots/$system
	if [ ! -e "$root.bare/.done" ]; then
		rm -rf "$root.bare" "$root.build"
		bare "$system" "$root.bare"
		touch "$root.bare/.done"
	fi
	if [ ! -e "$root.build" ]; then
		rm -rf "$root.new" # of a run that was ended
		cp -a "$root.bare" "$root.new"
		mv "$root.new" "$root.build"
	fi
	rm -rf "$root.build/vernier"
	mkdir -p "$root.build/vernier/source"
	git ls-files -z --cached --others --exclude-standard -- ':!fixtures' ':!tests/fuzz' |
		xargs -0 cp -p --parents -t "$root.build/vernier/source"
	cp -L /etc/resolv.conf "$root.build/etc/"
	inside "$root.build" <<'T'
cd /vernier/source
tests/install.sh
apt-get install -q -y --no-install-recommends lintian dpkg-dev >/dev/null
cmake -S . -B ../build -G Ninja -DCMAKE_BUILD_TYPE=Release -DVERNIER_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr \
	-DCMAKE_SKIP_RPATH=ON >/dev/null
cmake --build ../build -- --quiet
cd ../build
cpack -G DEB >/dev/null
lintian --allow-root --fail-on error *.deb
echo "lintian: no error"
T
	mkdir -p "$out/$system"
	cp "$root.build"/vernier/build/*.deb "$out/$system/"

	rm -rf "$root.try"
	cp -a "$root.bare" "$root.try"
	cp -L /etc/resolv.conf "$root.try/etc/"
	mkdir -p "$root.try/vernier"
	cp "$out/$system"/*.deb "$root.try/vernier/"
	cp -r fixtures/qwen2-trained "$root.try/vernier/model"
	cp -r fixtures/mistral-trained "$root.try/vernier/mistral"
	inside "$root.try" <<'T' || fail "$system: see above"
cd /vernier
apt-get update -q >/dev/null
apt-get install -q -y --no-install-recommends ./vernier_*.deb >/dev/null 2>&1
vernier --version
vernier capture ref model --ids 12,345,6,78,9,10,111 -o ref.h5 2>/dev/null
vernier capture ref model --ids 12,345,6,78,9,10,111 --inject R1@layer1 -o cand.h5 2>/dev/null
! vernier explain ref.h5 cand.h5 --model model >said
grep '^explained.*: R1' said
! vernier devices 2>said
grep 'install it and a driver: Debian and Ubuntu: libvulkan1' said >/dev/null
apt-get install -q -y --no-install-recommends gcc libc6-dev pkg-config ./libvernier-capture*.deb >/dev/null 2>&1
cd /usr/share/vernier/examples
flags=$(pkg-config --cflags --libs vernier-capture)
cc -std=c99 capture.c $flags -lm -o /vernier/shared
cc -std=c99 capture.c \
	$(pkg-config --cflags --static --libs vernier-capture |
		sed 's/-lvernier-capture/-l:libvernier-capture.a/') -o /vernier/static
cd /vernier
for kind in shared static; do ./$kind mistral $kind.h5; done
vernier compare shared.h5 static.h5 --bitwise --allow itself | grep '^within'
apt-get remove -q -y vernier libvernier-capture0 >/dev/null 2>&1
! ls /usr/share/vernier /usr/lib/*/libvernier* 2>/dev/null
T
	rm -rf "$root.try"
	echo "$system: $(cd "$out" && ls -s --block-size=1 "$system"/*.deb | tr '\n' ' ')"
done
