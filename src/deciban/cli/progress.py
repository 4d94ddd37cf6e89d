"""Progress bars on stderr, if it is a terminal: rows, rows per second, time left."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from deciban.data.files.scan import Scan


@contextmanager
def watched(scan: Scan, *, quiet: bool) -> Iterator[None]:
    """Shows how much of the files has been read."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with bar(Console(stderr=True)) as progress:
        watch = Watch(progress, scan)
        scan.on_progress = watch.update
        yield


class Watch:
    """Updates the bar with rows and bytes, file by file; each new pass restarts it."""

    def __init__(self, progress: Progress, scan: Scan) -> None:
        self.sizes = {file.path: getattr(file, "size", None) or os.path.getsize(file.path) for file in scan.fragments}
        self.before = dict(zip(self.sizes, accumulate(self.sizes.values(), initial=0), strict=False))  # (files) bytes
        self.progress, self.rows = progress, 0
        self.task = progress.add_task("reading", total=sum(self.sizes.values()) or None, rows=0)

    def update(self, rows: int, read: int, path: str) -> None:
        if rows < self.rows:
            self.progress.reset(self.task, description="reading again", rows=0)
        self.rows = rows
        self.progress.update(self.task, completed=self.before[path] + read, rows=rows)


def bar(console: Console) -> Progress:
    """A bar that pulses once the files are read, since the work after a pass takes an unknown time."""
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    class Activity(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("working" if task.finished else task.description)

    class PulsingBar(BarColumn):
        def render(self, task: Task) -> ProgressBar:
            rendered = super().render(task)
            rendered.pulse = task.finished
            return rendered

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            rows, seconds = task.fields["rows"], task.finished_time or task.elapsed or 0
            return Text(f"{rows / seconds:,.0f} rows/s" if seconds > (0 if task.finished else 0.5) else "")

    class TimeLeft(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            if task.finished_time is None or task.elapsed is None:
                return super().render(task)
            return Text(f"{timedelta(seconds=int(task.elapsed - task.finished_time))}")

    columns = Activity(), PulsingBar(), TextColumn("{task.fields[rows]:,} rows"), Rate(), TimeLeft()
    return Progress(*columns, console=console, transient=True)
