"""`discreet serve`: private personalisation over HTTP."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def serve(
    data: Annotated[
        str | None,
        typer.Option(
            help="The folder of the database and the learners; made on first start.", metavar="DIR"
        ),
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="A PostgreSQL URL, to be used instead of SQLite.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port to listen on.", show_default="8080")
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(help="all, or ranker or writer alone.", show_default="all"),
    ] = None,
    witness: Annotated[
        str | None,
        typer.Option(
            help="The folder that remembers what was released, outside of the data, so that a "
            "restored backup is found out.",
            show_default="DIR.witness",
        ),
    ] = None,
    tls_certificate: Annotated[str | None, typer.Option(help="A PEM file, to serve HTTPS.")] = None,
    tls_key: Annotated[str | None, typer.Option(help="The key of the certificate.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file with these options and more.")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(help="debug, info, warning or error.", show_default="info")
    ] = None,
    *,
    new_witness: Annotated[
        bool,
        typer.Option(
            "--new-witness",
            help="Take the data to be the newest where the witness knows nothing of it. For one "
            "start, if you are certain.",
        ),
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Play visitors against a bandit `news`.")
    ] = False,
    proxy: Annotated[
        bool,
        typer.Option("--proxy", help="Trust a proxy in front to say who the client is."),
    ] = False,
) -> None:
    """Serve private decisions over HTTP, with a dashboard at /.

    Options may also be given in the environment (DISCREET_PORT=9000) or in a TOML file.

    The administrator's key is DISCREET_ADMIN_KEY, or is made on first start and printed once.
    """
    from discreet.cli import _shared as shared

    try:
        from discreet.service._configuration import configuration
        from discreet.service._run import serve as run
    except ModuleNotFoundError as error:
        shared.fail(f"serve: needs {error.name}; run pip install 'discreet[serve]'")
    made = configuration(
        {
            "data": data,
            "database": database,
            "host": host,
            "port": port,
            "role": role,
            "witness": witness,
            "new_witness": new_witness or None,
            "tls_certificate": tls_certificate,
            "tls_key": tls_key,
            "log_level": log_level,
            "demo": demo or None,
            "proxy": proxy or None,
        },
        file=config,
    )
    sys.exit(run(made))
