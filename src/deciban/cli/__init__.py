"""The command `deciban`. Heavy imports wait until a command needs them; mail is filtered without any."""

from __future__ import annotations

import gc
import sys
from typing import Any


def main() -> None:
    """Runs the command line."""
    from deciban.cli import mail

    try:
        if mail.is_asked_for(sys.argv[1:]):
            gc.disable()  # there is little to collect, and looking for it takes a twentieth of the time
            raise SystemExit(mail.run(sys.argv[2], sys.argv[3:]))
        from deciban.cli.commands import app
        from deciban.cli.reporting import end_orderly

        end_orderly()
        app(prog_name="deciban")
    except KeyboardInterrupt:  # while all that is imported or put together; a command ends by itself
        raise SystemExit(130) from None


def __getattr__(name: str) -> Any:
    if name == "app":
        from deciban.cli.commands import app

        return app
    raise AttributeError(name)
