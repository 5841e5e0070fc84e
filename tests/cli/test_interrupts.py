"""Ctrl-C: the first asks, the second insists; whatever was there before is restored."""

from __future__ import annotations

import signal

import pytest

from hdwarp.cli.interrupts import Interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_insists(number, capsys):
    before = signal.getsignal(number)
    with Interrupts() as interrupts:
        assert not interrupts()
        signal.raise_signal(number)
        assert interrupts()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before
    assert "gives up" in capsys.readouterr().err
