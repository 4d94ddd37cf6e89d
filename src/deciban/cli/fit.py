"""`deciban fit`: from data files to a model file."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import deciban
from deciban.cli.model_kinds import DEFAULT, KINDS, ModelSettings, family_words, model_option, option_for
from deciban.cli.options import Data, Json, OptionGroup, Quiet, Reading, Target, choice, option, with_groups

if TYPE_CHECKING:
    from collections.abc import Mapping

evaluation_option = partial(option, rich_help_panel="Evaluation")


class ModelPlan(OptionGroup):
    """A new model: its kind and settings, its columns, and how it is evaluated."""

    text: list[str] | None = option(metavar="COL,COL", help="Columns of documents (for mail: all columns). Repeatable.")
    drop: list[str] | None = option(metavar="COL,COL", help="Columns to drop. Repeatable.")
    model: str | None = model_option("--model", among=KINDS, help=f"The model (default {DEFAULT}).")
    columns: list[str] | None = model_option(
        metavar="COL=FAMILY",
        help="How to read a column: a=category,b=number; for naive-bayes also its family: "
        f"{', '.join(family_words())}. Repeatable.",
    )
    settings: ModelSettings
    calibrate: str | None = model_option(
        "--calibrate",
        among=["temperature", "isotonic"],
        help="Calibrate the probabilities by cross-validation; reads all rows into memory.",
    )
    folds: int | None = evaluation_option(
        help="Cross-validate with this many folds; reads all rows into memory, unless --engine is given.", min=2
    )
    loo: bool = evaluation_option("--loo", default=False, help="Evaluate by leave-one-out; reads all rows into memory.")

    @property
    def kind(self) -> str:
        return self.model or DEFAULT

    @property
    def given_options(self) -> list[str]:
        """The options that were given."""
        options = [f"--{each.name}" for each in fields(self) if each.name != "settings" and getattr(self, each.name)]
        return options + [option_for(parameter) for parameter in self.settings.params]


@with_groups
def fit(
    data: Data,
    target: Target,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The model file to write; replaced once the fit is done.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Continue training this model; -o defaults to the same file.")
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(help="Fit a new model that reads columns as this one does, so that both can be merged exactly."),
    ] = None,
    label_from_folder: Annotated[
        bool, typer.Option("--label-from-folder", help="For mail and texts: the label is the folder below DATA.")
    ] = False,
    engine: Annotated[
        str | None,
        choice(
            "--engine",
            among=["dask", "spark"],
            help="Fit on a cluster, or on this machine's cores: DATA may be s3://..., hdfs://... and folders of files.",
        ),
    ] = None,
    plan: ModelPlan,
    reading: Reading,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to files, and write it to a file.

    evidence (in two passes), naive-bayes, lda and qda are fitted batch by batch: files may be larger than memory.

    --resume adds rows to the counts of a model. evidence keeps its weights until refit-weights.

    --like fits a model of other rows, perhaps on another machine, that `deciban merge` adds without loss.

    --engine needs the extra dask or spark. Dask connects to the scheduler at DASK_SCHEDULER_ADDRESS, if it is set.

    If the fit fails, no file is written.

    \b
    Examples:
      deciban fit people.csv --label evade -o people.deciban
      deciban fit more.csv --resume people.deciban
    """
    from deciban.cli.fitting import fit_like, fit_new, opened, resumed
    from deciban.cli.show import print_fitted
    from deciban.persist.storage import locked

    _require_one_plan(plan, resume, like)
    if engine is not None:
        from deciban.cli.engine_runs import refuse

        refuse({"--label-from-folder": label_from_folder, "--calibrate": plan.calibrate, "--loo": plan.loo})
    if label_from_folder and target.label is not None:
        raise typer.BadParameter("the label is the folder or a column: drop --label", param_hint="--label-from-folder")
    default = "folder" if label_from_folder else None if reading.labels is None else "label"
    target = replace(target, label=default if target.label is None else target.label)
    path = output or resume
    if path is None:
        raise typer.BadParameter("a new model needs a file to write to", param_hint="--output / -o")
    if target.label is None and resume is None and like is None:
        raise typer.BadParameter(
            "a new model needs a label column; for mail, use --label-from-folder", param_hint="--label"
        )
    evaluations: Mapping[str, deciban.Evaluation] = {}
    with ExitStack() as stack:
        with opened(data, reading, path, engine, quiet=quiet) as scan:
            if resume is not None:
                stack.enter_context(locked(path))
                fitted: Any = resumed(resume, scan, target)
            elif like is not None:
                fitted = fit_like(like, scan, target)
            else:
                fitted, evaluations = fit_new(plan, scan, target)
        fitted.save(path)  # after the cluster is closed, which takes seconds: Ctrl-C until then writes nothing
    print_fitted(fitted, path, evaluations, json=json)


def _require_one_plan(plan: ModelPlan, resume: Path | None, like: Path | None) -> None:
    """Raises an error if more than one of --resume, --like and the options of a new model are given."""
    if resume is not None and like is not None:
        raise typer.BadParameter("--resume adds rows to a model, --like fits another one: use only one of them")
    options = ", ".join(plan.given_options)
    if resume is not None and options:
        raise deciban.DecibanError(f"--resume continues with a model as it is: drop {options}, or fit without --resume")
    if like is not None and options:
        raise deciban.DecibanError(f"--like reads columns as a model does: drop {options}, or fit without --like")
