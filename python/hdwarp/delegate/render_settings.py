"""delegate.render_settings: how to render, as far as no prim says it. Plain data; its rows give the CLI its help."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hdwarp.errors import ArgumentError, NotSupported


@dataclass(frozen=True, slots=True)
class RenderSettings:
    """Hydra's render settings as keyword arguments; `DESCRIPTORS` has a line of help on each."""

    integrator: str = "headlight"
    headlight: bool = True
    shadows: bool = False
    cull: bool = False

    def __post_init__(self) -> None:
        if self.integrator != "headlight":
            raise NotSupported(f"RenderSettings(integrator={self.integrator!r}): only 'headlight' is supported so far")
        if self.shadows:
            raise NotSupported("RenderSettings(shadows=True): shadows are not supported yet")
        if not self.headlight:
            raise NotSupported("RenderSettings(headlight=False): lights are not supported yet; use the albedo plane for unlit colour")
        for setting in fields(self):
            if setting.name != "integrator" and not isinstance(getattr(self, setting.name), bool):
                raise ArgumentError(f"RenderSettings({setting.name}={getattr(self, setting.name)!r}): expected True or False")


@dataclass(frozen=True, slots=True)
class SettingDescriptor:
    """Hydra's setting descriptor: key, name to show, default, help."""

    key: str
    name: str
    default: object
    help: str


DESCRIPTORS = (
    SettingDescriptor("integrator", "Integrator", "headlight", "how `color` is computed: 'headlight' (base colour times |N.V|)"),
    SettingDescriptor("headlight", "Headlight", True, "a light at the camera; the only light so far"),
    SettingDescriptor("shadows", "Shadows", False, "cast shadows (not supported yet)"),
    SettingDescriptor("cull", "Cull back faces", False, "look through back faces of prims that are not doubleSided"),
)


def setting_help(key: str) -> str:
    """A setting's help as a sentence: for `--help`."""
    text = next(setting.help for setting in DESCRIPTORS if setting.key == key)
    return f"{text[0].upper()}{text[1:]}."


def settings_table() -> list[str]:
    """The settings as lines of a Markdown table: for the README."""
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for setting in DESCRIPTORS:
        help_text = setting.help.replace("|", "\\|")
        lines.append(f"| `{setting.key}` | `{setting.default!r}` | {help_text} |")
    return lines
