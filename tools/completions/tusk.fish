# SPDX-License-Identifier: GPL-3.0-or-later
#
# Completion of tusk for fish.  Commands and options come from tusk's own help.

# Commands of one word, and the first words of the others.
function __tusk_commands
    tusk help 2>/dev/null | sed -n '/^Commands:/,/^$/p' | string match -rg '^  ([a-z]+)' | sort -u
end

# Second words of the command that was begun.
function __tusk_second_words
    set -l words (commandline -opc)
    tusk help 2>/dev/null | string match -rg "^  $words[2] ([a-z]+)  "
end

function __tusk_is_first
    test (count (commandline -opc)) -eq 1
end

function __tusk_is_second
    test (count (commandline -opc)) -eq 2
    and test -n "$(__tusk_second_words)"
end

function __tusk_options
    set -l words (commandline -opc)
    set -l command $words[2]
    if set -q words[3]; and test -n "$(__tusk_second_words)"
        set -a command $words[3]
    end
    tusk $command --help 2>/dev/null | string match -rg '^  (?:-[a-zA-Z], |    )(--[a-z-]+)'
end

complete -c tusk -n __tusk_is_first -f -a '(__tusk_commands) help --help --version'
complete -c tusk -n __tusk_is_second -f -a '(__tusk_second_words)'
complete -c tusk -n 'not __tusk_is_first; and string match -q -- "-*" (commandline -ct)' -f -a '(__tusk_options)'
complete -c tusk -l scheme -x -a 'aes-256-xts aes-128-xts aes-128-cbc aes-256-cbc aes-128-cbc-elephant aes-256-cbc-elephant none'
complete -c tusk -l sector-size -x -a '512 4096'
complete -c tusk -l integrity -x -a 'on off'
complete -c tusk -l fit -x -a 'grow strict wrap scale compact skip'
complete -c tusk -l format -x -a 'fio fiov1 blkparse msr'
complete -c tusk -l event -x -a 'Q D C'
complete -c tusk -l speed -x -a 'max 1 2 0.5'
