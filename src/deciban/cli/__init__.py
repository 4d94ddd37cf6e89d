"""The command `deciban`. Each command imports what it needs; the mail commands do without typer and pyarrow."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any


def main() -> None:
    """Runs the command line."""
    from deciban.cli import mail

    try:
        if mail.is_mail_command(sys.argv[1:]):
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no matrix is multiplied: threads would only be started
            gc.disable()  # a mail leaves little garbage, and collecting it takes 5 % of the time
            raise SystemExit(mail.run(sys.argv[2], sys.argv[3:]))
        from deciban.cli.commands import app
        from deciban.cli.process_exit import exiting_on_signals

        with exiting_on_signals():
            app(prog_name="deciban")
    except KeyboardInterrupt:  # during imports; later, commands handle it
        raise SystemExit(130) from None


def __getattr__(name: str) -> Any:
    if name == "app":
        from deciban.cli.commands import app

        return app
    raise AttributeError(name)
