"""`deciban mail learn` and `deciban mail forget`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from deciban.cli.mail import FAILED
from deciban.cli.mail_input import mails_of
from deciban.cli.process_exit import exiting_on_signals, say
from deciban.data.files.mail_message import NotMail, parse
from deciban.errors import DecibanError

if TYPE_CHECKING:
    import argparse


def learn_or_forget(options: argparse.Namespace) -> int:
    """Reads all mail, then updates the model under a lock."""
    from deciban.mail.filter import Filter
    from deciban.persist.storage import locked

    forgets = options.command == "forget"
    mails, skipped = [], 0
    for name in options.mails or ["-"]:
        for title, data in mails_of(name, options):
            try:
                mails.append(parse(data).texts)
            except NotMail as error:
                if not (options.mbox or len(options.mails) > 1):
                    raise
                say(f"{title}: {error}")
                skipped += 1
    if not mails:
        raise DecibanError(f"there is no mail to {options.command}")
    with exiting_on_signals(), locked(options.model):
        new = not forgets and not os.path.exists(options.model)
        model = Filter.new() if new else Filter.load(options.model)
        changed = model.forget(mails, options.label) if forgets else model.learn(mails, options.label)
        changed.save(options.model)
    if new:
        say(f"{options.model} is a new model: naive Bayes for mail")
    return FAILED if skipped else 0
