"""stage.walk: what a walk over a stage carries down and what it finds. No matrices turned, nothing built."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from pxr import Gf, Usd

from hdwarp.errors import Diagnostic, OwnedDiagnostics
from hdwarp.stage import draw_modes, lod, shapes
from hdwarp.stage.columns import GeometryKind
from hdwarp.stage.expansion import Budget, Expansion
from hdwarp.stage.facts import FactReader, Facts
from hdwarp.stage.images import Images
from hdwarp.stage.instancers import InstancerData, Instances
from hdwarp.stage.lights import FoundLight
from hdwarp.stage.looks import Material
from hdwarp.stage.meshes import MeshEntry, MeshSet
from hdwarp.stage.path_map import PathMap
from hdwarp.stage.skinning import Skinning

InstancerEntry = tuple[InstancerData | None, tuple[Diagnostic, ...], str]  # and where it was found
IDENTITY = Gf.Matrix4d(1.0)


@dataclass(slots=True, eq=False)
class State:
    """What a prim passes on to its children. Matrices are Gf rows in scene units, from the prim to the world (or to the space its
    point instancer's prototype root sits in)."""

    path: str
    matrix: Gf.Matrix4d
    visible: bool
    purpose: str | None  # authored here or above; None: the fallback, which does not inherit
    purpose_visibility: dict[str, bool] | None
    body: str
    articulation: str  # nearest prim with ArticulationRootAPI
    collision: bool | None  # whether the nearest CollisionAPI is enabled; None: there is none
    constants: dict[str, np.ndarray]
    binder: str  # nearest prim with material bindings
    collections: bool  # a collection binding here or above: membership depends on the very path
    instances: Instances | None
    entry: State | None  # state of the innermost native instance
    prototype: str  # and the path of its prototype
    any_specifier: bool
    owner: str  # the outermost point instancer that draws it; "": it stands on the stage itself
    skel_root: str  # the outermost SkelRoot here or above
    draw_mode: str = ""  # nearest model:drawMode; "": there is none
    hidden: bool = False  # something else is drawn in its place: what stands in for its model, another LOD
    lod_override: lod.Override | None = None
    expansion: Expansion | None = None  # of the outermost point instancer
    lods: tuple[lod.Place, ...] = ()  # items of roots whose cameras choose that it is in, outermost first
    shows_items: bool = False  # a LOD root: the choice of an item stands in for the item's own visibility


def root_state() -> State:
    return State("", IDENTITY, True, None, None, "", "", None, {}, "", False, None, None, "", False, "", "")


@dataclass(slots=True, eq=False)
class Drawn:
    """A gprim found by the walk; gather.py makes the Gprim of it."""

    path: str
    mesh: MeshEntry | None
    shape: shapes.Shape | None  # of what has no mesh
    state: State
    double_sided: bool
    source: str = ""  # the path of the very prim
    visual: bool = True  # False: read only because it is a collider
    one_sided: bool = False
    materials: tuple[str, ...] = ()  # of face subsets that are no prims: paths among the walk's own

    @property
    def kind(self) -> GeometryKind:
        """What the gprim will be; of what has a mesh once that is built."""
        return self.shape.kind if self.mesh is None else self.mesh.built.form

    @property
    def slots(self) -> tuple[tuple[str, bool], ...]:
        """Material slots of a mesh's subsets: prim name, and whether that prim has bindings of its own."""
        return self.mesh.slots if self.mesh is not None else ()

    @property
    def owner(self) -> str:
        return self.state.owner or self.path


@dataclass(slots=True, eq=False)
class Walk:
    """What one walk goes by, and where it leaves what it finds."""

    reader: FactReader
    purposes: frozenset[str]
    mask: Usd.StagePopulationMask | None
    diagnostics: OwnedDiagnostics
    skinning: Skinning
    geometry: PathMap[MeshEntry | InstancerEntry]  # by path of the very prim: read before, or by this walk
    collisions: bool = False  # read colliders too that are not drawn
    draw_modes: bool = True  # False: models are drawn whole whatever their draw mode
    meshes: MeshSet = field(default_factory=MeshSet)
    drawn: list[Drawn] = field(default_factory=list)
    bodies: dict[str, tuple[Gf.Matrix4d, str]] = field(default_factory=dict)  # and the articulation root
    sites: dict[str, tuple[Gf.Matrix4d, str]] = field(default_factory=dict)  # and the body, as of those that follow
    cameras: dict[str, tuple[Gf.Matrix4d, str]] = field(default_factory=dict)
    lights: dict[str, FoundLight] = field(default_factory=dict)
    types: dict[str, str | dict[str, int]] = field(default_factory=dict)  # owner -> type of an imageable prim; types and their numbers
    skinned: dict[tuple, MeshEntry] = field(default_factory=dict)  # by pose; never kept longer: poses are read anew
    contents: list[tuple[str, str]] = field(default_factory=list)  # (path of a subtree, owner of what it is drawn by)
    sources: list[tuple[str, str]] = field(default_factory=list)  # (path of a prim, owner of what is made from its values)
    visited: int = 0
    at: str = ""  # path of the prim that is looked at
    boxes: draw_modes.Boxes | None = None
    images: Images = field(default_factory=Images)
    lods: dict[str, lod.LodRoot] = field(default_factory=dict)  # roots whose items cameras choose
    materials: dict[str, Material] = field(default_factory=dict)  # of what is no Material prim: pictures of cards
    budget: Budget = field(default_factory=Budget)

    def count_below(self, owner: str, type_name: str) -> None:
        """A prim that an instancer draws counts with the instancer."""
        known = self.types[owner]
        if isinstance(known, str):
            known = self.types[owner] = {known: 1}
        known[type_name] = known.get(type_name, 0) + 1


def is_drawn(walk: Walk, state: State) -> bool:
    purpose = state.purpose or "default"
    return (
        not state.hidden
        and state.visible
        and purpose in walk.purposes
        and (state.purpose_visibility is None or state.purpose_visibility.get(purpose, True))
    )


def is_read(walk: Walk, state: State) -> bool:
    return is_drawn(walk, state) or (walk.collisions and bool(state.collision))


def is_visual(walk: Walk, state: State) -> bool:
    """Of what is read: whether it is drawn."""
    return not walk.collisions or is_drawn(walk, state)


def path_of_its_own(facts: Facts, state: State) -> str:
    """Where a prim's own opinions are: in native prototypes and those of point instancers not where it is drawn."""
    return state.path if state.entry is None and not state.owner else str(facts.prim.GetPath())
