"""The command line: options before the command, the commands, and every error as one sentence and an exit code."""

import io
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from rlbench import __version__
from rlbench.cli import common
from rlbench.errors import InputError, RlbenchError

COMMANDS = (
    "models",
    "gpus",
    "estimate_memory",
    "rollout_speed",
    "accuracy",
    "probe",
    "compare",
    "run",
    "merge",
    "grade",
    "doctor",
)
"""The modules of the commands, in the order of the help. They import light things only, at their top."""

INTERRUPTED = 130

app = typer.Typer(
    name="rlbench",
    help="Which small open language model gives the most reinforcement-learning reward per dollar.",
    add_completion=True,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # typer's rich help imports a Markdown parser and a highlighter: 0.3 s at every start
)


def _before_command(context: typer.Context, **given: Any) -> None:
    if given.pop("version"):
        sys.stdout.write(f"rlbench {__version__}\n")
        raise typer.Exit
    context.obj = given
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    if os.environ.get("COLUMNS") == "0":
        # Some terminals do not know their width; rich would print nothing.
        del os.environ["COLUMNS"]
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale without the character (LC_ALL=C) costs the character, not the result.
        sys.stdout.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code (0 ok, 1 failed, 2 bad input, 3 does not fit, 4 cap, 5 check failed)."""
    try:
        _register(arguments)
        _warn_of_unknown_variables()
        spelled = [_kebab(argument) for argument in arguments]
        result = app(args=spelled, prog_name="rlbench", standalone_mode=False, default_map=_defaults(spelled))
        if sys.stdout is not None:
            sys.stdout.flush()
    except RlbenchError as error:
        common.warn(str(error))
        return error.exit_code
    except typer.TyperException as error:
        common.warn(_usage_sentence(error))
        return 2
    except (typer.Abort, KeyboardInterrupt):
        result = INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has what it wanted.
        _silence_stdout()
        return 0
    except OSError as error:
        if error.filename is None:
            _silence_stdout()
        what = error.filename if error.filename is not None else "standard output"
        common.warn(f"{what}: {error.strerror or error}: name another file or folder, or free some space.")
        return 1
    if result == INTERRUPTED:  # typer makes this of a KeyboardInterrupt, and says nothing
        common.warn("stopped; the same command goes on where it was.")
    return result if isinstance(result, int) else 0


def _silence_stdout() -> None:
    # What is still in its buffer cannot be written; Python must not complain of it again at exit.
    if isinstance(sys.stdout, io.TextIOWrapper):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _register(arguments: Sequence[str]) -> None:
    if app.registered_callback is None:
        _register_options()
    for name in _modules(arguments):
        import_module(f"rlbench.cli.{name}")


def _modules(arguments: Sequence[str]) -> Sequence[str]:
    """The command's own module where that will do: importing all of them takes a tenth of a second."""
    first = _snake(arguments[0]) if arguments else ""
    all_options_needed = any("config" in argument for argument in arguments) or any(
        name.startswith(common.ENV_PREFIX) for name in os.environ
    )
    return COMMANDS if first not in COMMANDS or all_options_needed else (first,)


def _register_options() -> None:
    import inspect
    from typing import Annotated

    version = inspect.Parameter(
        "version",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, typer.Option("--version", help="Print the version and exit.")],
    )
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context, version, *common.common_parameters()]
    _before_command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    _before_command.__annotations__ = {p.name: p.annotation for p in parameters}
    app.callback()(_before_command)


def _kebab(argument: str) -> str:
    # lm-eval spells its flags with underscores; both spellings work.
    flag, equals, value = argument.partition("=")
    return flag.replace("_", "-") + equals + value if flag.startswith("--") else argument


def _defaults(arguments: Sequence[str]) -> dict[str, Any]:
    """Options from the --config file, as typer wants them: by command, then by parameter."""
    path = os.environ.get("RLBENCH_CONFIG")
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        if argument == "--config":
            path = following
        elif argument.startswith("--config="):
            path = argument.removeprefix("--config=")
    return _read_config(Path(path)) if path else {}


def _read_config(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the configuration file {path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise InputError(f"the configuration file {path} is not TOML: {error}.") from None
    everywhere = {key: value for key, value in data.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in data.items() if isinstance(value, dict)}
    _refuse_unknown(path, tables, common.OPTIONS, "command")
    _refuse_unknown(path, everywhere, {option for options in common.OPTIONS.values() for option in options}, "option")
    defaults: dict[str, Any] = {}
    for command, options in common.OPTIONS.items():
        own = tables.get(command, {})
        _refuse_unknown(path, own, options, f"option of {command}")
        merged = {**everywhere, **own}
        defaults[command] = {_snake(key): value for key, value in merged.items() if _snake(key) in options}
    return defaults


def _refuse_unknown(path: Path, given: Any, known: Any, kind: str) -> None:
    names = {name.replace("_", "-") for name in known}
    for key in given:
        if key.replace("_", "-") not in names:
            near = get_close_matches(key.replace("_", "-"), names, n=1)
            offer = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(sorted(names))}."
            raise InputError(f"{path} has the key '{key}', which is no {kind}: {offer}")


def _snake(key: str) -> str:
    return key.replace("-", "_")


def _usage_sentence(error: typer.TyperException) -> str:
    message = " ".join(error.format_message().split()).rstrip(".")
    return f"{message[:1].lower()}{message[1:]} (see `rlbench --help`)."


def _warn_of_unknown_variables() -> None:
    known = common.known_environment()
    for name in sorted(os.environ):
        if name.startswith(common.ENV_PREFIX) and name not in known:
            near = get_close_matches(name, known, n=1)
            offer = f"; did you mean {near[0]}?" if near else "."
            common.warn(f"the environment variable {name} is not one of rlbench's and does nothing{offer}")


if __name__ == "__main__":
    main()
