"""shade.look: what colour depends on beside what is seen: textures, lights, settings, and the scene that shadow rays are traced through."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hdwarp.tables.lights import LightTurn
from hdwarp.tables.structs import (
    DomeTables,
    InstanceColumns,
    LightColumns,
    MaterialColumns,
    MeshColumns,
    PrimvarColumns,
    TextureColumns,
    TopLevel,
)
from hdwarp.trace.jobs import SceneKinds


@dataclass(frozen=True, slots=True, eq=False)
class Lights:
    """The lights of a scene."""

    columns: LightColumns
    domes: DomeTables
    turns: Sequence[LightTurn]  # of each light that a world has, globals first


@dataclass(frozen=True, slots=True, eq=False)
class Sheer:
    """What says how much of the light surfaces let through."""

    materials: MaterialColumns
    textures: TextureColumns | None  # None: no opacity comes from one
    coordinates: Sequence[PrimvarColumns]  # as in `Look`
    values: Sequence[PrimvarColumns]
    display_opacity: PrimvarColumns | None  # 1 wide: of what has no material


@dataclass(frozen=True, slots=True, eq=False)
class TracedScene:
    """What shadow rays are traced through."""

    meshes: MeshColumns
    instances: InstanceColumns
    top: TopLevel
    kinds: SceneKinds
    sheer: Sheer | None = None  # None: whatever is in a ray's way stops it


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """How colour is made. By default: of constants, by the camera's light."""

    lit: bool = True  # False: the base colour alone
    camera_light: bool = True  # where a world has no lights, the camera has one
    ambient_occlusion: bool = False  # what is near takes from light that comes from all around; needs a scene
    shadows: bool = True  # lights cast them; needs a scene
    light_samples: int = 16  # of a light that is no point, for all samples of a pixel together
    sample_count: int = 1  # of a pixel
    textures: TextureColumns | None = None  # those of the materials; None: no material has one
    coordinates: Sequence[PrimvarColumns] = ()  # 2 wide, by which textures are laid, in the order of their sets
    values: Sequence[PrimvarColumns] = ()  # 4 wide, primvars that are shown themselves
    # Inputs of materials that textures are of -> the sets of coordinates that these are laid by.
    textured: Mapping[str, Collection[int]] = field(default_factory=dict)
    blended: bool = False  # some surfaces let what is behind them shine through
    lights: Lights | None = None  # None: there are none
    scene: Callable[[], TracedScene] | None = None  # as it is now; None: none of both

    @property
    def is_traced(self) -> bool:
        """Whether rays say how much of the light comes to what is seen."""
        return self.scene is not None and (self.ambient_occlusion or (self.shadows and self.lights is not None))
