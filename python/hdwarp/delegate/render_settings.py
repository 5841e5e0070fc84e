"""delegate.render_settings: how to render, as far as no prim says it. Plain data; its rows give the CLI its help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hdwarp.errors import ArgumentError

INTEGRATORS = ("fast", "preview", "unlit")


@dataclass(frozen=True, slots=True)
class SettingDescriptor:
    """Hydra's setting descriptor: key, name to show, default, help."""

    key: str
    name: str
    default: object
    help: str


DESCRIPTORS = (
    SettingDescriptor(
        "integrator",
        "Integrator",
        None,
        "how `color` is computed: 'preview' (direct light with shadows), 'fast' (without) or 'unlit' (the base colour); None: 'preview' "
        "for pictures, 'fast' for sensors",
    ),
    SettingDescriptor("headlight", "Camera light", True, "light stages that have no lights from the camera, and by a soft dome"),
    SettingDescriptor("shadows", "Shadows", None, "lights cast shadows; None: in 'preview'"),
    SettingDescriptor(
        "ambient_occlusion",
        "Ambient occlusion",
        False,
        "light from all around (the camera's dome, domes without shadows) is less where what is near is in its way",
    ),
    SettingDescriptor("textures", "Textures", True, "materials show their textures, else one colour: the mean of the texture"),
    SettingDescriptor("light_samples", "Light samples", 16, "shadow rays a pixel towards a light that is no point, shared by the samples"),
    SettingDescriptor("cull", "Cull back faces", False, "look through back faces of prims that are not doubleSided"),
)


@dataclass(frozen=True, slots=True)
class RenderSettings:
    """Hydra's render settings as keyword arguments; `DESCRIPTORS` has a line of help on each."""

    integrator: str | None = None
    headlight: bool = True
    shadows: bool | None = None
    ambient_occlusion: bool = False
    textures: bool = True
    light_samples: int = 16
    cull: bool = False

    def __post_init__(self) -> None:
        if self.integrator is not None and self.integrator not in INTEGRATORS:
            raise ArgumentError(f"RenderSettings(integrator={self.integrator!r}): expected {', '.join(INTEGRATORS)}, or None")
        for name in ("headlight", "shadows", "ambient_occlusion", "textures", "cull"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (name == "shadows" and value is None):
                raise ArgumentError(f"RenderSettings({name}={value!r}): expected True or False")
        count = self.light_samples
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 1024:
            raise ArgumentError(f"RenderSettings(light_samples={count!r}): expected a number from 1 to 1024")

    def decided(self, integrator: str) -> RenderSettings:
        """With what None leaves open: ``integrator`` where none is chosen, and shadows as it has them."""
        chosen = self.integrator or integrator
        return replace(self, integrator=chosen, shadows=chosen == "preview" if self.shadows is None else self.shadows)

    @classmethod
    def of_attributes(cls, attributes: Mapping[str, object], otherwise: RenderSettings) -> RenderSettings:
        """``otherwise``, and over it what ``hdwarp:NAME`` attributes of a RenderSettings prim say. Raises ArgumentError as `__init__`."""
        said = {setting.key: attributes[f"hdwarp:{setting.key}"] for setting in DESCRIPTORS if f"hdwarp:{setting.key}" in attributes}
        return replace(otherwise, **said) if said else otherwise


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
