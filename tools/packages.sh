# shellcheck shell=bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# For tools/test and tools/try to source: which packages of Debian and Ubuntu
# are needed for what, and how they come onto the machine.
#
# The sourcing script defines give_up MESSAGE..., which ends it, and $install:
# empty if nothing may be installed.

packages_build="build-essential meson ninja-build pkg-config libfuse3-dev fuse3
	libgcrypt20-dev libbsd-dev libjson-c-dev libarchive-dev"

# Commands that a machine of another kind must have, for the same purposes.
commands_build="gcc meson ninja pkg-config fusermount3"

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@" </dev/null
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "this needs root, and there is no sudo: $*" >&2
		return 1
	fi
}

apt_updated=
apt_install() {
	[ -n "$install" ] || give_up "missing packages: $*"
	if [ -z "$apt_updated" ]; then
		as_root apt-get -q update || give_up "apt-get update failed"
		apt_updated=yes
	fi
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
		--no-install-recommends install "$@" ||
		give_up "could not install: $*"
}

# Those of the packages named that are not installed.
missing_packages() {
	local p
	for p; do
		dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null |
			grep -qx installed || echo "$p"
	done
}

# need_packages "PACKAGE..." "COMMAND..."
#
# Elsewhere than on Debian and Ubuntu names of packages say nothing: there the
# commands have to be there, and the build says which library is not.
need_packages() {
	local list c
	if ! command -v dpkg-query >/dev/null; then
		for c in $2; do
			command -v "$c" >/dev/null ||
				give_up "this is neither Debian nor Ubuntu," \
					"and $c is missing; see CONTRIBUTING.md"
		done
		return
	fi
	# shellcheck disable=SC2086
	list=$(missing_packages $1)
	# shellcheck disable=SC2086
	[ -z "$list" ] || apt_install $list
}

# Every distribution's udev makes the device usable by all; containers and
# minimal machines may not.
open_fuse() {
	[ -e /dev/fuse ] || as_root modprobe fuse 2>/dev/null
	[ -e /dev/fuse ] || as_root mknod -m 666 /dev/fuse c 10 229
	[ -e /dev/fuse ] || { echo "there is no /dev/fuse"; return 1; }
	[ "$(stat -c %a /dev/fuse)" = 666 ] || as_root chmod 666 /dev/fuse
	# fusermount3 looks here for what a user may unmount; bare containers
	# and chroots lack it.
	[ -e /etc/mtab ] || as_root ln -s /proc/mounts /etc/mtab
}
