"""`rlbench merge DIR`: take in the results of another store."""

from pathlib import Path
from typing import Annotated

import typer

from rlbench.cli.app import app
from rlbench.cli.common import Session, command


@command(app, "merge", "take in another results folder")
def merge(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Another results folder.")],
) -> None:
    """Take in the jobs of another results folder that this one does not have yet."""
    from rlbench.errors import StoreError
    from rlbench.store import Store

    if not (folder / "runs").is_dir():
        raise StoreError(f"there is no results folder {folder}: name one that holds `runs/`.")
    other = Store(folder)
    taken = Store(session.store).merge(other)
    found = len(other.folders())
    if session.json:
        session.emit({"taken": taken, "already_here": found - taken})
    else:
        session.out.print(f"{taken} jobs taken into {session.store}, {found - taken} were there already.")
