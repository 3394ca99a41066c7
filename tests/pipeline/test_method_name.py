from __future__ import annotations

from typing import Any

import pytest

from pipeline.method_name import method_name, rules_name


def settings(kind: str, rules: tuple[bool, bool], scheme: str) -> dict[str, Any]:
    refer = {"rule_1": rules[0], "rule_2": rules[1]}
    return {"agent": {"kind": kind, "refer": refer}, "replay": {"scheme": scheme}}


@pytest.mark.parametrize(
    ("kind", "rules", "scheme", "name"),
    [
        ("vracer", (True, True), "uniform", "V-RACER, ReF-ER"),
        ("ddpg", (False, False), "uniform", "DDPG, ER"),
        ("naf", (True, False), "uniform", "NAF, ReF-ER-1"),
        ("naf", (False, True), "per", "NAF, ReF-ER-2, PER"),
        ("dqn", (False, False), "pser", "DQN, ER, PSER"),
        ("mine.agents:Careful", (False, False), "mine.schemes.Newest", "Careful, ER, Newest"),
    ],
)
def test_names(kind: str, rules: tuple[bool, bool], scheme: str, name: str) -> None:
    kept = settings(kind, rules, scheme)
    assert method_name(kept) == name
    assert rules_name(kept) == name.partition(", ")[2]
