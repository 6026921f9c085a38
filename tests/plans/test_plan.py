from pathlib import Path

import pytest

from rlbench.errors import InputError
from rlbench.plans.plan import load_plan


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'about' is missing"),
        ('about = "x"', "'job' is missing"),
        ('about = "x"\n[[job]]\nmodels = []', "job 1, 'kind' is missing"),
        ('about = "x"\n[[job]]\nkind = "memry"', "job 1, 'kind' must be memory, rollout, accuracy or probe"),
        ('about = "x"\n[[job]]\nkind = "rollout"\nmodles = []', "job 1, 'modles' is not a key of a plan"),
        ('about = "x"\n[[job]]\nkind = "rollout"\nrepeats = 1.5', "job 1, 'repeats' input should be a valid integer"),
        ("x ==", "is not TOML"),
    ],
)
def test_a_plan_with_a_mistake_is_refused_with_the_job_and_the_key(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_plan(str(path))
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
