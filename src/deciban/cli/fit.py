"""`deciban fit`: from files to a model file."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deciban.cli.kinds import DEFAULT, FAMILIES, KINDS, SETTINGS
from deciban.cli.options import Data, Json, Label, Quiet, Reading, TrimLabel, Weight, choice, reads_files

if TYPE_CHECKING:
    from deciban.evaluation import Evaluation

MODEL = "What is learned"  # headlines in the help
JUDGED = "How good it is"


@reads_files
def fit(
    data: Data,
    reading: Reading,
    label: Label = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The model file; one that is there is replaced at the end.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on learning with this model; -o is then the same file, if not given.")
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(help="Read columns as this model does, and learn DATA alone: both models can then be merged."),
    ] = None,
    label_from_folder: Annotated[
        bool, typer.Option("--label-from-folder", help="Of mail or texts: the class is the folder below DATA.")
    ] = False,
    text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL,COL", help="Columns of documents, whose words are evidence; all those of mail. Repeatable."
        ),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COL,COL", help="Columns to leave out. Repeatable.")] = None,
    weight: Weight = None,
    engine: Annotated[
        str | None,
        choice(
            "--engine",
            among=["dask", "spark"],
            help="What reads DATA, here or on a cluster: also s3://..., hdfs://... and folders of csv, jsonl, parquet.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        choice("--model", among=KINDS, help=f"The kind of model; {DEFAULT} if not given.", rich_help_panel=MODEL),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL=FAMILY",
            help=f"How a column is read, a=category,b=number; of naive-bayes also its family: {', '.join(FAMILIES)}. "
            "Repeatable.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    families: Annotated[
        str | None,
        choice(
            "--families",
            among=["auto"],
            help="Of naive-bayes: choose families of numbers by leave-one-out.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    smoothing: Annotated[
        str | None,
        typer.Option(
            metavar="auto|NUMBER",
            help="Of naive-bayes: Laplace's count to add; 1 if not given.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    missing_cells: Annotated[
        str | None,
        choice(
            "--missing",
            among=["skip", "category"],
            help="Of naive-bayes: a missing cell is no evidence, or a value of its own.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    prior: Annotated[
        str | None,
        choice(
            "--prior",
            among=["empirical", "laplace", "uniform"],
            help="The classes' probabilities before any evidence.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    shrinkage: Annotated[
        str | None,
        typer.Option(
            metavar="auto|oas|NUMBER", help="Of lda and qda: that of the covariance, 0 to 1.", rich_help_panel=MODEL
        ),
    ] = None,
    l2: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Of logistic and softmax: the penalty.", rich_help_panel=MODEL)
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            metavar="auto|NUMBER",
            help="Of evidence: how many pairs of columns are read together, at most.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    trees: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Of evidence: how many decision trees are grown; 128 if not given, 0 for none.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    max_weight_rows: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Of evidence: the most rows that trees are grown and weights are fitted on; 200,000 if not given.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    random_state: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Of evidence: the seed of its trees and of the choice of rows; 0 if not given.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    calibrate: Annotated[
        str | None,
        choice(
            "--calibrate",
            among=["temperature", "isotonic"],
            help="Correct the probabilities by folds; reads all rows into memory.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            help="Cross-validate by so many folds; reads all rows into memory, but with --engine.",
            min=2,
            rich_help_panel=JUDGED,
        ),
    ] = None,
    loo: Annotated[
        bool,
        typer.Option("--loo", help="Leave each row out; reads all rows into memory.", rich_help_panel=JUDGED),
    ] = False,
    trim_label: TrimLabel = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn a model from files, and write it to a file.

    evidence (in two passes), naive-bayes, lda and qda read batch by batch: files may be larger than memory.

    --resume adds rows to what was counted; the weights of evidence stay as they are: see refit-weights.

    --like makes parts, on other machines or later, that merge adds up to one model without loss.

    --engine needs deciban's extra dask or spark to be installed; Dask uses the scheduler of DASK_SCHEDULER_ADDRESS.

    Nothing is written if anything fails.

    \b
    Examples:
      deciban fit people.csv --label evade -o people.deciban
      deciban fit more.csv --resume people.deciban
    """
    from deciban.cli.learning import learned, learned_like, opened, resumed
    from deciban.cli.show import fitted
    from deciban.storage import locked

    given = (families, smoothing, missing_cells, prior, shrinkage, l2, pairs, trees, max_weight_rows, random_state)
    asked = dict(zip(SETTINGS, given, strict=True))
    settings = {name: value for name, value in asked.items() if value is not None}
    if resume is not None and like is not None:
        raise typer.BadParameter("--resume adds rows to the model, --like makes another one: give one of them")
    follows = "--like" if resume is None else "--resume"
    if resume is not None or like is not None:
        others = {"--model": model, "--columns": columns, "--drop": drop, "--calibrate": calibrate, "--folds": folds}
        others |= {"--text": text}
        changed = [option for option, value in {**others, "--loo": loo}.items() if value]
        _refuse_changes(follows, [*changed, *(SETTINGS[name] for name in settings)])
    if engine is not None:
        from deciban.cli.engines import refuse

        refuse({"--label-from-folder": label_from_folder, "--calibrate": calibrate, "--loo": loo})
    if label_from_folder:
        if label is not None:
            raise typer.BadParameter(
                "the class is the folder, or the column of --label", param_hint="--label-from-folder"
            )
        label = "folder"
    elif label is None and reading.labels is not None:
        label = "label"
    path = output or resume
    if path is None:
        raise typer.BadParameter("a first fit needs one", param_hint="--output / -o")
    if label is None and resume is None and like is None:
        raise typer.BadParameter("a first fit needs one; of mail, --label-from-folder", param_hint="--label")
    judged: dict[str, Evaluation] = {}
    with ExitStack() as held:
        with opened(data, reading, path, engine, quiet=quiet) as scan:
            if resume is not None:
                held.enter_context(locked(path))
                found = resumed(resume, scan, label, trim_label, weight)
            elif like is not None:
                found = learned_like(like, scan, label, trim_label, weight)
            else:
                found, judged = learned(
                    scan,
                    str(label),
                    trim_label=trim_label,
                    weight=weight,
                    drop=drop,
                    columns=columns,
                    text=text,
                    kind=model or DEFAULT,
                    settings=settings,
                    calibrate=calibrate,
                    folds=folds,
                    loo=loo,
                )
        found.save(path)  # when a cluster is closed, which takes seconds: Ctrl-C until then leaves nothing
    fitted(found, path, judged, json=json)


def _refuse_changes(follows: str, options: list[str]) -> None:
    from deciban.errors import DecibanError

    if options:
        does = "goes on with a model as it is" if follows == "--resume" else "reads columns as a model does"
        raise DecibanError(f"{follows} {does}: leave out {', '.join(options)}, or fit without {follows}")
