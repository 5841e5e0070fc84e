"""cli.app: the commands and how they end: exit codes, errors as one line, Ctrl-C."""

from __future__ import annotations

import gc
import sys
import traceback

import typer

from hdwarp.cli import check, doctor, inspect, render, unsupported
from hdwarp.cli.console import DONE, FAILED, USAGE, print_json, say
from hdwarp.errors import ArgumentError, Error

_UsageError = typer.BadParameter.__mro__[1]  # click's, which typer brings along under a name of its own in newer versions

_INTERRUPTED = 130  # what typer makes of a KeyboardInterrupt

app = typer.Typer(
    name="hdwarp",
    help="Render the cameras of USD stages: colour, depth, normals, ids, barycentrics. No display, no OpenGL, no GPU needed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("render", help=render.HELP)(render.render)
app.command("inspect", help=inspect.HELP)(inspect.inspect)
app.command("check", help=check.HELP)(check.check)
app.command("doctor", help=doctor.HELP)(doctor.doctor)
app.command("import", help="Robot description (MJCF) to USD: not supported yet.", context_settings=unsupported.ANY_ARGUMENTS)(
    unsupported.import_robot
)
app.command("view", help="The inspector: not supported yet.", context_settings=unsupported.ANY_ARGUMENTS)(unsupported.view)


def _version(value: bool) -> None:
    if value:
        from hdwarp import __version__

        print(f"hdwarp {__version__}")
        raise typer.Exit


@app.callback()
def _root(version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True)) -> None:
    pass


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code: 0 done, 1 failed, 2 usage, 3 some outputs failed."""
    if arguments is None:
        arguments = sys.argv[1:]
        gc.disable()  # nothing that start-up makes is garbage, and looking for it takes a seventh of the time; `render` enables it again
    debug, as_json = "--debug" in arguments, "--json" in arguments
    try:
        code = app(args=[argument for argument in arguments if argument != "--debug"], prog_name="hdwarp", standalone_mode=False)
        code = code if isinstance(code, int) else DONE
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            return USAGE
        hint = f"; see '{error.ctx.command_path} --help'" if error.ctx is not None else ""
        say(f"{error.format_message().rstrip('.')}{hint}")
        code = USAGE
    except typer.Exit as error:
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = _fail("interrupted", FAILED, debug, as_json)
    except ArgumentError as error:
        code = _fail(error, USAGE, debug, as_json)
    except Error as error:
        code = _fail(error, FAILED, debug, as_json)
    except BrokenPipeError:
        code = FAILED
    except Exception as error:
        say("this is a defect of hdwarp; --debug shows where it happened")
        code = _fail(f"{type(error).__name__}: {error}", FAILED, debug, as_json)
    return code


def _fail(error: object, code: int, debug: bool, as_json: bool) -> int:
    if debug:
        traceback.print_exc()
    say(f"error: {error}")
    if as_json:
        print_json({"outputs": [], "diagnostics": [], "failed": [str(error)]})
    return code
