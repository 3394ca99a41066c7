from __future__ import annotations

import pytest

from pipeline.protocol import main
from pipeline.protocol.command import PROTOCOLS
from storage.errors import ConfigError


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_names_every_protocol(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in PROTOCOLS)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_each_has_a_help_of_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: sharpwave protocol {name} ")


def test_an_unknown_one_gets_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"no protocol 'atri', did you mean 'atari'\?"):
        main(["atri"])
