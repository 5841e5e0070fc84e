"""later: names of the contract that this version does not carry out yet. Using one raises NotSupported and says so."""

from __future__ import annotations

from typing import NoReturn

from hdwarp.errors import NotSupported


class _NotYet(type):
    """Metaclass: calling the class, or asking it for a method, names what is missing."""

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        raise NotSupported(f"{cls.__qualname__} is part of hdWarp's interface, but this version does not carry it out yet")

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("_"):  # inspect, pickle, copy and doctest look for private names
            raise AttributeError(name)
        raise NotSupported(f"{cls.__qualname__}.{name} is part of hdWarp's interface, but this version does not carry it out yet")

    def __repr__(cls) -> str:
        return f"<{cls.__qualname__}: not supported yet>"


def not_yet(name: str) -> type:
    """A stand-in for a class or function of the contract, under its public name: `not_yet("hdwarp.SensorManager")`."""
    module, _, attribute = name.rpartition(".")
    return _NotYet(attribute, (), {"__qualname__": name, "__module__": module, "__doc__": f"{name}: not supported yet."})


SensorManager = not_yet("hdwarp.SensorManager")
