"""The command line: thin. It parses, calls one function, and prints a table or one JSON object.

One module for each command. They import what they need when they run, so that --help is quick.
"""

import sys
from typing import Annotated, Any

import typer

from discreet.cli import _console as console
from discreet.cli import _interrupts as interrupts
from discreet.cli import _shared as shared
from discreet.cli import (
    audit,
    card,
    demo,
    ledger,
    plan,
    replay,
    reproduce,
    serve,
    simulate,
    variants,
)
from discreet.errors import DiscreetError
from discreet.version import __version__

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

# Newer releases of typer carry click inside and older ones depend on it: take the common base of
# usage errors from wherever typer has it.
_UsageTrouble: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Contextual linear bandits under joint differential privacy."""
    if version:
        print(f"discreet {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


for _command in (
    plan.plan,
    simulate.simulate,
    replay.replay,
    variants.variants,
    demo.demo,
    reproduce.reproduce,
    audit.audit,
    ledger.ledger,
    card.card,
    serve.serve,
):
    app.command()(_command)


def main() -> None:
    """Run a command; anything that goes wrong is one line on standard error and exit code 2.

    An interrupt is exit code 130.
    """
    command = typer.main.get_command(app)
    code: object = None
    try:
        with interrupts.kept(), console.output():
            code = command.main(prog_name="discreet", standalone_mode=False)
    except _UsageTrouble as error:
        context = getattr(error, "ctx", None)
        place = "discreet" if context is None else context.command_path
        shared.fail(f"{error.format_message().removesuffix('.')} (see {place} --help)")
    except (typer.Abort, KeyboardInterrupt):
        code = interrupts.EXIT_CODE
    except DiscreetError as error:
        shared.fail(shared.told(error))
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        shared.fail(f"{place}{error.strerror or error}")
    except MemoryError:
        shared.fail("this needs more memory than there is; give smaller sizes")
    # Newer releases of typer make an exit code of an interrupt, and return it.
    if code == interrupts.EXIT_CODE:
        console.note("interrupted")
    if isinstance(code, int) and code:
        sys.exit(code)
