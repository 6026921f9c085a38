"""What every command shares: the common options, the session they give, and errors as one sentence.

A command is a function whose first parameter is the `Session`; `command` adds the common options to the
rest of its signature, so that they are accepted after the command as well as before it, and gives every
option its environment variable (`--data-dir` is also `RLBENCH_DATA_DIR`).
"""

import functools
import inspect
import json
import math
import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from rich.console import Console

from rlbench.errors import InputError

ENV_PREFIX = "RLBENCH_"


@dataclass(frozen=True)
class Session:
    """The common options as they stand once the whole command line is read."""

    store: Path = Path("results")
    offline: bool = False
    quiet: bool = False
    verbose: bool = False
    json: bool = False

    @property
    def out(self) -> Console:
        """For data, as it is: no `:emoji:` replaced, no numbers coloured. Nothing else goes to standard output."""
        return _Out(emoji=False, highlight=False)

    @property
    def err(self) -> Console:
        """For progress, warnings and errors."""
        return Console(stderr=True, quiet=self.quiet)

    def emit(self, document: dict[str, Any]) -> None:
        """Print the one JSON document of a `--json` command."""
        # ASCII: it comes out whole whatever the locale, half a surrogate pair in somebody's answer included.
        sys.stdout.write(json.dumps(document, indent=1, allow_nan=False) + "\n")

    def warn(self, sentence: str) -> None:
        """One sentence on standard error."""
        warn(sentence)


class _Out(Console):
    def on_broken_pipe(self) -> None:
        # rich itself would end the process with exit code 1.
        raise BrokenPipeError


COMMON: dict[str, tuple[Any, Any]] = {
    "store": (
        Annotated[
            Path | None,
            typer.Option("--store", "--output-path", metavar="DIR", help="Results folder.", show_default="results"),
        ],
        None,
    ),
    "config": (
        Annotated[
            Path | None,
            typer.Option("--config", metavar="FILE", help="TOML file with options; flags win."),
        ],
        None,
    ),
    "offline": (
        Annotated[bool, typer.Option("--offline", help="Do not look at any hub.")], False,
    ),
    "quiet": (Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")], False),
    "verbose": (Annotated[bool, typer.Option("--verbose", "-v", help="Name each job's folder and seconds.")], False),
    "json": (
        Annotated[bool, typer.Option("--json", help="Print one JSON document.")], False,
    ),
}  # fmt: skip

OPTIONS: dict[str, dict[str, Any]] = {}
"""Of each command, its options by parameter name; filled as commands register."""


def command(app: typer.Typer, name: str, about: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as the command `name`, `about` in a few words, and give it the common options."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        own = list(inspect.signature(function).parameters.values())[1:]
        OPTIONS[name] = {p.name: hints[p.name] for p in own} | {n: hint for n, (hint, _) in COMMON.items()}
        for parameter, hint in OPTIONS[name].items():
            _give_environment_variable(parameter, hint)

        @functools.wraps(function)
        def run(context: typer.Context, **given: Any) -> None:
            common = {option: given.pop(option) for option in COMMON}
            _refuse_infinite(given)
            function(_merge(context.obj or {}, common), **given)

        context_parameter = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[p.name]) for p in own]
        parameters = [context_parameter, *keyword, *common_parameters()]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        app.command(name, short_help=about)(run)
        return function

    return register


def common_parameters() -> list[inspect.Parameter]:
    """The common options as parameters of a signature."""
    return [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for option, (hint, default) in COMMON.items()
    ]


def warn(sentence: str) -> None:
    """One sentence on standard error, whatever the verbosity."""
    sys.stderr.write(f"rlbench: {sentence}\n")


def command_line() -> str:
    """The command as typed, to be kept as the source of what it measures."""
    # A path may hold bytes that are no text; records are UTF-8.
    return shlex.join(["rlbench", *sys.argv[1:]]).encode("utf-8", "backslashreplace").decode("utf-8")


def known_environment() -> set[str]:
    """Every RLBENCH_ variable that some option reads."""
    return {_environment_name(option) for options in OPTIONS.values() for option in options}


def validation_sentence(error: Any, what: str) -> str:
    """The first complaint of a pydantic ValidationError, as a sentence about `what`."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{what}: {where + ': ' if where else ''}{message[:1].lower()}{message[1:]}."


def comma_list(values: Iterable[str]) -> tuple[str, ...]:
    """`["a,b", "c"]` as `("a", "b", "c")`: lists may be given either way."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _refuse_infinite(given: dict[str, Any]) -> None:
    for option, value in given.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"--{option.replace('_', '-')} is {value}: give a finite number.")


def _merge(before: dict[str, Any], after: dict[str, Any]) -> Session:
    chosen = {option: after[option] or before.get(option) for option in COMMON if option != "config"}
    store = chosen.pop("store")
    return Session(store=store or Path("results"), **{option: bool(value) for option, value in chosen.items()})


def _environment_name(option: str) -> str:
    return ENV_PREFIX + option.upper()


def _give_environment_variable(parameter: str, hint: Any) -> None:
    if get_origin(hint) is not Annotated:
        return
    for extra in get_args(hint)[1:]:
        # Arguments (the models) have no flag, so they have no variable either.
        if type(extra) is type(typer.Option()) and extra.envvar is None:
            extra.envvar = _environment_name(parameter)
            extra.show_envvar = False
