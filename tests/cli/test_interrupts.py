"""Ctrl-C: the first asks, the second insists; whatever was there before is restored."""

from __future__ import annotations

import signal

import pytest

from hdwarp.cli.interrupts import Interrupts


def test_the_first_signal_asks_and_the_second_insists(capsys):
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        assert not interrupts()
        signal.raise_signal(signal.SIGINT)
        assert interrupts()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert "again gives up" in capsys.readouterr().err
