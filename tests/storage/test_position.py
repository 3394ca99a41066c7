from __future__ import annotations

import json

from storage.position import LanePosition, OpenPosition, SegmentPosition, StorePosition


def test_survives_json() -> None:
    position = StorePosition(
        store_uuid="uuid",
        run="run",
        lanes=(
            LanePosition(3, 5, 40, 7, OpenPosition(40, 2, None, 6, 123, 99)),
            LanePosition(None, 0, 0, 0, None),
        ),
        segments=(SegmentPosition(0, 4, 77), SegmentPosition(3, 5, 2**32 - 1)),
        next_segment=4,
    )
    again = StorePosition.from_json(json.loads(json.dumps(position.to_json())))
    assert again == position
    assert hash(again) == hash(position)
