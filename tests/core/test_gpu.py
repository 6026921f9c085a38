"""A GPU says how many bytes a program can see, and which of its figures nobody confirmed."""

import pytest
from pydantic import ValidationError

from rlbench.core.gpu import Gpu


def test_visible_memory_in_bytes_is_in_units_of_two_to_the_thirtieth() -> None:
    assert Gpu(name="one", visible_gib=1.5, memory_bandwidth_gb_per_second=1).visible_bytes == 3 * 2**29


def test_an_unverified_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValidationError, match="bandwith"):
        Gpu(name="one", visible_gib=1, memory_bandwidth_gb_per_second=1, unverified=("bandwith",))
