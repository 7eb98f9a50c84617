# SPDX-License-Identifier: GPL-3.0-or-later
#
# Completion of tusk for bash.  Commands and options come from tusk's own help,
# so that they are those of the program that is installed.

# Names of commands that begin with $1 ("key "), without it: one word each.
_tusk_commands() {
	tusk help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z ]*[a-z]\)  .*/\1/p' |
		sed -n "s/^$1//p" | cut -d' ' -f1 | sort -u
}

_tusk_options() {
	tusk "$@" --help 2>/dev/null | sed -n '/^Options:/,/^$/p' |
		grep -oE '^  (-[a-zA-Z], |    )--[a-z-]+' | grep -oE -- '--[a-z-]+'
}

# Words for the value of option $1; nothing: file names.
_tusk_values() {
	case $1 in
	--scheme)
		echo aes-256-xts aes-128-xts aes-128-cbc aes-256-cbc \
			aes-128-cbc-elephant aes-256-cbc-elephant none ;;
	--sector-size) echo 512 4096 ;;
	--integrity) echo on off ;;
	--size) echo 1G 10G 100G 1T ;;
	--fit) echo grow strict wrap scale compact skip ;;
	--format) echo fio fiov1 blkparse msr ;;
	--event) echo Q D C ;;
	--speed) echo max 1 2 0.5 ;;
	--kdf-memory) echo 64M 256M 1G ;;
	--kdf-time) echo 0.5 1 2 5 ;;
	esac
}

_tusk() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} words

	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		words="$(_tusk_commands '') --help --version"
	elif [ "$command" = help ]; then
		words=$(_tusk_commands "${COMP_WORDS[*]:2:COMP_CWORD-2}${COMP_WORDS[3]+ }")
	elif [ "$COMP_CWORD" = 2 ]; then
		words=$(_tusk_commands "$command ")
	fi
	if [ -z "$words" ] && [ "$command" != help ]; then
		# The second word of a name is no argument.
		if [ -n "$(_tusk_commands "$command ")" ]; then
			command="$command ${COMP_WORDS[2]}"
		fi
		words=$(_tusk_values "$prev")
		if [ -z "$words" ] && [[ $cur == -* ]]; then
			# shellcheck disable=SC2086
			words=$(_tusk_options $command)
		fi
	fi
	if [ -n "$words" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	else
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}

complete -F _tusk tusk
