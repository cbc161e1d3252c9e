"""Shell completion: scripts for bash, zsh and fish, generated from the argument parser."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from streamsparql.cli.common_options import Commands, HelpFormatter

_EXAMPLES = """\
examples:
  streamsparql completion bash >> ~/.bash_completion
  streamsparql completion zsh > "${fpath[1]}/_streamsparql"
  streamsparql completion fish > ~/.config/fish/completions/streamsparql.fish"""


def add_completion(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command `completion`, which covers the commands that were added before it."""
    parser = commands.add_parser(
        "completion",
        help="print a completion script for a shell",
        description="Print the script with which a shell completes commands and options.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell to complete in")
    parser.set_defaults(run=partial(_complete, commands))


def _complete(commands: Commands[argparse.ArgumentParser], options: argparse.Namespace) -> int:
    print("\n".join(SHELLS[options.shell](_completable(commands))))
    return 0


class Option(NamedTuple):
    """An option of a command: its names, the values it accepts, and whether it takes a value."""

    names: tuple[str, ...]
    values: tuple[str, ...]
    takes_value: bool
    help: str


class Command(NamedTuple):
    """A command with its options, and the values that its positional arguments accept."""

    name: str
    help: str
    options: tuple[Option, ...]
    values: tuple[str, ...]
    takes_files: bool


def _completable(commands: Commands[argparse.ArgumentParser]) -> list[Command]:
    helps = {action.dest: action.help or "" for action in commands._choices_actions}
    completable = []
    for name, parser in commands.choices.items():
        options, values, files = [], list[str](), False
        for action in parser._actions:
            choices = tuple(map(str, action.choices or ()))
            text = getattr(action, "completion", action.help)
            if text == argparse.SUPPRESS:
                continue
            if not action.option_strings:
                values += choices
                files = files or not choices
                continue
            names, takes_value = tuple(action.option_strings), action.nargs != 0
            options.append(Option(names, choices, takes_value, text or ""))
        completable.append(Command(name, helps[name], tuple(options), tuple(values), files))
    return completable


# -- bash ------------------------------------------------------------------------------------------


def _bash(commands: list[Command]) -> Iterator[str]:
    names = " ".join(command.name for command in commands)
    yield "_streamsparql() {"
    yield '    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"'
    yield '    local command="" word words=""'
    yield "    COMPREPLY=()"
    yield "    # bash splits words at an equals sign"
    yield '    if [ "$current" = = ]; then current=""'
    yield '    elif [ "$before" = = ]; then before="${COMP_WORDS[COMP_CWORD-2]}"; fi'
    yield '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield f"        case $word in {names.replace(' ', '|')}) command=$word; break ;; esac"
    yield "    done"
    yield '    case "$command $before" in'
    for command in commands:
        for option in command.options:
            keys = "|".join(f'"{command.name} {name}"' for name in option.names)
            if option.values:
                yield f'        {keys}) words="{" ".join(option.values)}" ;;'
            elif option.takes_value:
                yield f"        {keys}) return ;;"
    yield '        *) case "$command" in'
    files = "|".join(command.name for command in commands if command.takes_files)
    yield f'            {files}) case "$current" in -*) ;; *) return ;; esac ;;'
    yield "        esac"
    yield '        case "$command" in'
    for command in commands:
        words = " ".join(name for option in command.options for name in option.names)
        words = " ".join([words, *command.values])
        yield f'            {command.name}) words="{words}" ;;'
    yield f'            *) words="{names} --help --version" ;;'
    yield "        esac ;;"
    yield "    esac"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "}"
    yield "complete -o default -F _streamsparql streamsparql"


# -- zsh -------------------------------------------------------------------------------------------


def _zsh(commands: list[Command]) -> Iterator[str]:
    yield "#compdef streamsparql"
    yield "_streamsparql() {"
    yield "    local -a commands"
    yield "    commands=("
    for command in commands:
        yield f"        {_quoted(f'{command.name}:{command.help}')}"
    yield "    )"
    yield "    if (( CURRENT == 2 )); then _describe command commands; return; fi"
    yield '    local command="$words[2]"'
    yield "    shift words; (( CURRENT-- ))"
    yield '    case "$command" in'
    for command in commands:
        values = f":value:({' '.join(command.values)})" if command.values else ":file:_files"
        yield f"        {command.name}) _arguments \\"
        for option in command.options:
            for name in option.names:
                help_text = _SPECIAL.sub(r"\\\g<0>", option.help)
                after = f":value:({' '.join(option.values)})" if option.values else ":value:_files"
                specification = f"*{name}[{help_text}]{after if option.takes_value else ''}"
                yield f"            {_quoted(specification)} \\"
        yield f"            {_quoted('*' + values)} ;;"
    yield "    esac"
    yield "}"
    yield 'if [ "$funcstack[1]" = _streamsparql ]; then _streamsparql "$@"; else compdef \\'
    yield "    _streamsparql streamsparql; fi"


# -- fish ------------------------------------------------------------------------------------------


def _fish(commands: list[Command]) -> Iterator[str]:
    for command in commands:
        name, help_text = command.name, _quoted(command.help)
        yield f"complete -c streamsparql -n __fish_use_subcommand -f -a {name} -d {help_text}"
        when = f"complete -c streamsparql -n '__fish_seen_subcommand_from {name}'"
        if command.values:
            yield f"{when} -f -a '{' '.join(command.values)}'"
        for option in command.options:
            flags = [f"-l {n[2:]}" if n[:2] == "--" else f"-s {n[1:]}" for n in option.names]
            value = f" -x -a '{' '.join(option.values)}'" if option.values else " -r"
            after = value if option.takes_value else ""
            yield f"{when} {' '.join(flags)}{after} -d {_quoted(option.help)}"


_SPECIAL = re.compile(r"[\[\]:\\]")
"""Characters that are syntax in the option specifications of zsh."""


def _quoted(text: str) -> str:
    """Quote a string for a shell.

    >>> print(_quoted("it's"))
    'it'\\''s'
    """
    inner = text.replace("'", "'\\''")
    return f"'{inner}'"


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
"""The functions that yield the lines of each shell's script."""
