"""All commands of the command line; for those of `deciban mail` see mail.py."""

from __future__ import annotations

from typing import Annotated

import typer

from deciban.cli import combine, demo, evaluate, explain, fit, mail, predict, report, show
from deciban.cli.error_reporting import Command, reported

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from deciban.cli.build_facts import build_facts  # importlib.metadata takes 15 ms

        typer.echo(build_facts())
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and how it was built, and exit.",
        ),
    ] = False,
) -> None:
    """Classification you can add up: fit, predict and explain in decibans."""


app.command(cls=Command)(reported(fit.fit))
app.command(cls=predict.Predict)(reported(predict.predict))
_updates = combine.merge, combine.forget, combine.refit_weights
for command in (explain.explain, evaluate.evaluate, report.report, *_updates, show.show, demo.demo):
    app.command(cls=Command)(reported(command))


def _mail(context: typer.Context) -> None:
    raise typer.Exit(mail.run(str(context.info_name), context.args))


mails = typer.Typer(no_args_is_help=True, help="Filter mail with a model, and train it mail by mail.")
app.add_typer(mails, name="mail")
for name, help_ in mail.COMMANDS.items():
    rest = {"ignore_unknown_options": True, "allow_extra_args": True}  # argparse reads them
    mails.command(name, help=help_, add_help_option=False, context_settings=rest)(_mail)
