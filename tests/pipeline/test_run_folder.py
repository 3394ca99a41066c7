"""What stands in a run's folder."""

from __future__ import annotations

import pytest

from pipeline.run_folder import RunFolder
from storage.errors import ConfigError


@pytest.mark.parametrize("text", [b"", b"agent: {kind: vra", b"\xff\xfe", b"just text"])
def test_damaged_settings_are_named(tmp_path, text):
    (tmp_path / "config.yaml").write_bytes(text)
    with pytest.raises(ConfigError, match=r"config\.yaml is damaged"):
        RunFolder(tmp_path).settings()
