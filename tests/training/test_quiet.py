from __future__ import annotations

import logging

from lightning.pytorch.utilities.rank_zero import rank_zero_info

from training.quiet import quiet_lightning

_SIGNALS = "lightning.pytorch.trainer.connectors.signal_connector"


def test_what_lightning_says_on_interrupts_is_dropped_and_nothing_else(caplog):
    """The command line words the interrupt itself."""
    quiet_lightning()
    with caplog.at_level(logging.INFO, "lightning"):
        rank_zero_info("\nDetected KeyboardInterrupt, attempting graceful shutdown ...")
        logging.getLogger(_SIGNALS).info("[rank: 0] Received SIGTERM: 15")
        rank_zero_info("the disk is on fire")
    assert [record.getMessage() for record in caplog.records] == ["the disk is on fire"]
