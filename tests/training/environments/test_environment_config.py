from __future__ import annotations

import pytest

from storage.errors import ConfigError
from training.environments.environment_config import EnvironmentConfig


def test_an_empty_id_is_refused():
    with pytest.raises(ConfigError, match="empty"):
        EnvironmentConfig("")
