"""One pool of workers for all hostile tests of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hostile.pool import Pool


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    made = Pool(Path(tmp_path_factory.mktemp("hostile")))
    yield made
    made.close()
