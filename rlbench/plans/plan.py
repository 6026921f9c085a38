"""A plan: a TOML file whose `[[job]]` tables are the same requests that the commands make from their flags."""

import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from rlbench.catalogue import package_file
from rlbench.core.value import Value
from rlbench.errors import InputError, UnknownName
from rlbench.plans.accuracy import AccuracyRequest
from rlbench.plans.base import Planned, Surroundings
from rlbench.plans.memory import MemoryRequest
from rlbench.plans.probe import ProbeRequest
from rlbench.plans.rollout import RolloutRequest

AnyRequest = Annotated[MemoryRequest | RolloutRequest | AccuracyRequest | ProbeRequest, Field(discriminator="kind")]


class Plan(Value):
    """What to measure, in order."""

    about: str
    job: tuple[AnyRequest, ...] = Field(min_length=1)

    def jobs(self, around: Surroundings) -> list[Planned]:
        """The jobs of every request, each once."""
        planned = [planned for request in self.job for planned in request.plan(around)]
        return list({one.job.key: one for one in planned}.values())


def load_plan(name: str) -> Plan:
    """The plan in the package called `name`, or in the TOML file of that path.

    Raises:
        UnknownName: there is neither.
        InputError: the file is not TOML, or a key or value of it is not a plan's.
    """
    path = Path(name) if name.endswith(".toml") else package_file("plans", f"{name}.toml")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = [file.stem for file in package_file("plans").glob("*.toml")]
        raise UnknownName("plan", name, known, "A plan of your own is a path that ends in .toml.") from None
    except OSError as error:
        raise InputError(f"the plan {path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise InputError(f"the plan {path} is not TOML: {error}.") from None
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        raise InputError(_sentence(path, error)) from None


def _sentence(path: Path, error: ValidationError) -> str:
    first = error.errors()[0]
    numbers = [part + 1 for part in first["loc"] if isinstance(part, int)]
    words = [str(part) for part in first["loc"] if isinstance(part, str)]
    where = f"job {numbers[0]}, " if numbers else ""
    if first["type"].startswith("union_tag"):
        words = ["kind"]
    reasons = {
        "extra_forbidden": "is not a key of a plan",
        "missing": "is missing",
        "union_tag_not_found": "is missing",
        "union_tag_invalid": "must be memory, rollout, accuracy or probe",
    }
    reason = reasons.get(first["type"], first["msg"][:1].lower() + first["msg"][1:])
    return f"the plan {path}: {where}'{words[-1] if words else 'plan'}' {reason}."
