"""stage.columns: what the adapter hands on. NumPy only, no pxr objects: metres, radians, column-vector float64 matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from hdwarp.errors import Diagnostics
from hdwarp.stage.looks import Light, Material


class GeometryKind(IntEnum):
    """What an instance points at; the number is the one the device tables hold."""

    MESH = 0
    SPHERE = 1  # unit sphere, radius 1; the authored radius is in the transform
    CUBE = 2  # [-1, 1]^3; half the authored size is in the transform
    CONE = 3  # cylinders too: closed, about z from -1 to 1; `shape` holds the radius at either end, the larger is 1
    CAPSULE = 4  # cone about z from -half to half height, closed by balls that touch it smoothly, the larger of radius 1: see `shape`
    PLANE = 5  # [-1, 1]^2 at z = 0, its front up; goes on for ever where `shape` says so
    # What follows is geometry as meshes are: a row of its own, with a tree. See `MeshGeometry`.
    POINTS = 6  # a ball a point
    TUBES = 7  # round curves
    RIBBONS = 8  # flat curves

    @property
    def is_shape(self) -> bool:
        return GeometryKind.MESH < self < GeometryKind.POINTS

    @property
    def is_swept(self) -> bool:
        """Points and curves."""
        return self >= GeometryKind.POINTS

    @property
    def is_curve(self) -> bool:
        return self >= GeometryKind.TUBES

    @property
    def has_geometry(self) -> bool:
        """Whether gprims of this kind have a `MeshGeometry`."""
        return not self.is_shape

    @property
    def point_count(self) -> int:
        """Points of a triangle, or of what stands in its place. Not of shapes."""
        return _POINT_COUNTS[self]


_POINT_COUNTS = {GeometryKind.MESH: 3, GeometryKind.POINTS: 1, GeometryKind.TUBES: 4, GeometryKind.RIBBONS: 8}

CAPPED_START, CAPPED_END, STRAIGHT, BALL = 1, 2, 4, 8  # flags of `MeshGeometry.pieces`


MAX_CLIPPING_PLANES = 16  # that one camera may have


@dataclass(slots=True)
class Primvar:
    """A primvar that varies over a mesh. Constant ones are `Gprim.constants`, per-instance ones `Gprim.instance_primvars`."""

    interpolation: str  # "uniform" (per face), "vertex" (per point; also for "varying"), "faceVarying" (per face corner), or
    # "bezier", of curves: four values a segment, 4 * segment + 0..3, in Bernstein's basis along it
    values: np.ndarray  # (n, k) float32, k = 1..4
    indices: np.ndarray | None = None  # (m,) int32 into values, already checked to be in range

    def content(self) -> list[np.ndarray | None]:
        """Arrays that tell this primvar from another of the same interpolation."""
        return [self.values, self.indices]


@dataclass(slots=True, eq=False)
class MeshGeometry:
    """One unique polygon mesh in object space and authored units, triangulated. Holes, faces with fewer than three corners
    and faces that use a bad point or index have no triangles; face, corner and point numbers stay as authored.

    Points and curves are kept alike, by another reading of the columns. What is a triangle here is:
    - POINTS: a ball about points[t] of radius radii[t]; its face is the number of the authored point.
    - TUBES: a piece of a segment, cubic: control points points[4 t .. 4 t + 3], and as many radii, in Bernstein's basis; a disc of the
      radius swept along, square to it. Its face is the number of the segment, through all curves of the prim.
    - RIBBONS: a piece of a segment, ruled between two cubics: points[8 t .. 8 t + 3] one edge, points[8 t + 4 .. 8 t + 7] the other,
      `normal` = along x (other - one). No radii.
    Values that are per end of a segment ("varying") are found by triangle_points = triangle_corners = (end, end, start) of the segment
    among all values. Pieces are short: `pieces` says which part of the segment each is.
    """

    points: np.ndarray  # (P, 3) float32, all finite (a bad point is replaced by zeros and used by no triangle)
    triangle_corners: np.ndarray  # (T, 3) int32: index into the authored faceVertexIndices; counter-clockwise is the front
    triangle_points: np.ndarray  # (T, 3) int32: index into points; of curves, as triangle_corners, into the values per end of a segment
    triangle_face: np.ndarray  # (T,) int32: authored face; triangles are in authored face order
    face_count: int
    corner_count: int
    normals: Primvar | None = None  # shading normals, authored or computed as DESIGN section 3 says; None: faceted
    primvars: dict[str, Primvar] = field(default_factory=dict)  # by name without "primvars:"
    face_subset: np.ndarray | None = None  # (face_count,) int16: index into Gprim.subset_materials, -1 in no subset
    reach: float = 0.0  # how far it reaches along an axis of its own
    owner: str = ""  # path of the one prim that has it, where a caller sets points or primvars in place of the stage's
    is_moved: bool = False  # the caller sets its points: those that are drawn are not `points`
    form: GeometryKind = GeometryKind.MESH  # MESH, POINTS, TUBES or RIBBONS
    radii: np.ndarray | None = None  # float32, one a row of `points`: of POINTS and TUBES
    pieces: np.ndarray | None = None  # (T,) int32, of curves: 16 * (2^m + k) + flags; the piece runs from k / 2^m to (k + 1) / 2^m of its
    # segment. CAPPED_START, CAPPED_END: closed by a disc there. STRAIGHT: points and radii are evenly spaced on a line. BALL: a joint, of
    # which only the first control point and radius count
    ids: np.ndarray | None = None  # (P,) int64 authored ids of POINTS by face; None: the numbers themselves


@dataclass(slots=True, eq=False)
class Instancer:
    """A PointInstancer, for decoding ids."""

    path: str
    ids: np.ndarray  # (n,) int64 authored ids, or 0..n-1
    outer: Instancer | None = None  # the instancer that places this one; an instance id is then outer id x len(ids) + inner index


@dataclass(slots=True, eq=False)
class Gprim:
    """One drawable prim: Hydra's rprim. A prim drawn through a point instancer has one row of `transforms` an instance."""

    path: str  # given out: authored path, instance proxy path inside native instances
    kind: GeometryKind
    mesh: MeshGeometry | None  # None for shapes
    transforms: np.ndarray  # (n, 4, 4) float64: world_from_object, metres, column vectors
    # What the transform cannot hold. CONE, CAPSULE: radius at the lower and upper end of the cone, half its height; PLANE: half width and
    # length, 1 or infinite.
    shape: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    instance_ids: np.ndarray | None = None  # (n,) int32 index into the instancer's protoIndices; None: zeros
    instancer: Instancer | None = None
    material: str = ""  # path of its Material, "" none
    subset_materials: tuple[str, ...] = ()  # material of each GeomSubset slot; "": the subset is bound to nothing: the gprim's own
    body: str = ""  # path of the body that carries it
    double_sided: bool = False
    one_sided: bool = False  # its back faces are never drawn
    purpose: str = "default"
    collision: bool = False  # a collider: UsdPhysics.CollisionAPI, not disabled, on it or on the nearest prim above that has it
    visual: bool = True  # visible, and of a purpose that is drawn; False only where colliders are read as well
    # (path of a UsdLod root whose item each camera chooses, number of the item it is in, number of the default item), outermost first
    lods: tuple[tuple[str, int, int], ...] = ()
    constants: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (k,) float32, k = 1..4, inherited ones included
    instance_primvars: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (n, k) float32, authored on the instancer


@dataclass(slots=True, eq=False)
class Body:
    """A prim with UsdPhysics.RigidBodyAPI whose physics:rigidBodyEnabled is not false."""

    path: str
    world_from_body: np.ndarray  # (4, 4) float64, rigid (scale and shear taken out), metres
    articulation: str = ""  # path of the nearest prim with UsdPhysics.ArticulationRootAPI: the body's own, or one above


@dataclass(slots=True, eq=False)
class Camera:
    """A UsdGeom.Camera at one time. Lengths in metres: lens values are tenths of a scene unit in USD, turned here."""

    path: str
    world_from_camera: np.ndarray  # (4, 4) float64 rigid: rotation and position [m]; scale, shear and mirror are in `axes`
    axes: np.ndarray  # (3, 3) float64: what the full matrix applies to camera-space directions before the rotation; identity normally
    body: str = ""  # path of the body that carries it
    source: str = ""  # path of the prim that it was read from, where that is another: the same camera in another world
    projection: str = "perspective"  # or "orthographic"
    focal_length: float = 0.0
    aperture: tuple[float, float] = (0.0, 0.0)  # horizontal, vertical
    aperture_offset: tuple[float, float] = (0.0, 0.0)
    clipping_range: tuple[float, float] = (0.0, 0.0)
    clipping_planes: np.ndarray = field(default_factory=lambda: np.zeros((0, 4)))  # (n, 4), n <= MAX_CLIPPING_PLANES: camera space [m]; cut
    # where a.x + d < 0
    exposure_scale: float = 1.0  # UsdGeom.Camera.ComputeLinearExposureScale
    f_stop: float = 0.0
    focus_distance: float = 0.0  # metres
    shutter: tuple[float, float] = (0.0, 0.0)  # time codes relative to the frame
    attributes: dict[str, object] = field(default_factory=dict)  # authored namespaced attributes, for scene.cameras.attribute()


@dataclass(slots=True, eq=False)
class Site:
    """A named frame: a prim with HdWarpSiteAPI, NewtonSiteAPI or MjcSiteAPI, whatever its type, visibility and purpose."""

    path: str
    world_from_site: np.ndarray  # (4, 4) float64 rigid, metres
    body: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class WorldGroup:
    """Worlds made of one prim: copies of a prototype, or one that is authored as prims."""

    root: str  # path of the prim
    first: int  # number of its first world
    placements: np.ndarray | None  # (count, 4, 4) float64 rigid, metres: where each copy's root prim stands; None: one world, where the
    # stage has it
    label: str  # path of a copy's root with "{}" for the number of its world; of an authored world its own path
    spec: int = 0  # which of the specs given made it: authored worlds of one spec belong together
    stays: tuple[bool, bool, bool, bool] = (True, True, True, True)  # which of a copy's x, y, z and orientation are given; in the others
    # copies are where the root of the prototype is

    @property
    def count(self) -> int:
        return 1 if self.placements is None else len(self.placements)

    def following(self, pose: np.ndarray) -> WorldGroup:
        """The group where the root of the prototype is at ``pose`` (4, 4): what was not given of the copies' placements goes with it."""
        if self.placements is None or all(self.stays):
            return self
        placements = np.tile(pose, (self.count, 1, 1))
        placements[:, :3, 3] = np.where(self.stays[:3], self.placements[:, :3, 3], pose[:3, 3])
        if self.stays[3]:
            placements[:, :3, :3] = self.placements[:, :3, :3]
        return replace(self, placements=placements)

    def root_label(self, world: int) -> str:
        """Path that the root prim goes by in a world of this group: in the first its own."""
        return self.root if world == self.first else self.label.replace("{}", str(world))

    def label_of(self, path: str, world: int) -> str:
        """The same for any prim; what is not at or below the root keeps its path."""
        if path != self.root and not path.startswith(f"{self.root}/"):
            return path
        return self.root_label(world) + path[len(self.root) :]


# (path, paths of its point instancers from the outermost on, which one of several with both alike)
GprimKey = tuple[str, tuple[str, ...], int]


def is_seen_by(gprim: Gprim, chosen: Mapping[str, int]) -> bool:
    """Whether the items that a gprim is in are those ``chosen`` (root -> item; the default where it says nothing)."""
    return all(chosen.get(root, default) == item for root, item, default in gprim.lods)


def gprim_keys(gprims: Iterable[Gprim]) -> dict[GprimKey, Gprim]:
    """Gprims that have instances, by key. One prim can be drawn twice by the same instancers: as a prototype, and as part of another one
    above it."""
    found: dict[GprimKey, Gprim] = {}
    for gprim in gprims:
        if len(gprim.transforms) == 0:
            continue
        chain, instancer = [], gprim.instancer
        while instancer is not None:
            chain.append(instancer.path)
            instancer = instancer.outer
        path, instancers, number = gprim.path, tuple(reversed(chain)), 0
        while (path, instancers, number) in found:
            number += 1
        found[path, instancers, number] = gprim
    return found


@dataclass(slots=True, eq=False)
class StageChanges:
    """What is new on a stage, or read anew, by key or path; None: it is gone. What is not named is as it was, or gone if ``complete``."""

    complete: bool = False
    gprims: dict[GprimKey, Gprim | None] = field(default_factory=dict)
    materials: dict[str, Material | None] = field(default_factory=dict)
    bodies: dict[str, Body | None] = field(default_factory=dict)
    cameras: dict[str, Camera | None] = field(default_factory=dict)
    sites: dict[str, Site | None] = field(default_factory=dict)
    lights: dict[str, Light | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any((self.complete, self.gprims, self.materials, self.bodies, self.cameras, self.sites, self.lights))


@dataclass(slots=True, eq=False)
class StageColumns:
    """Everything the renderer draws of one stage at one time. Its lists are in sorted path order."""

    metres_per_unit: float
    up_axis: str  # "Y" or "Z"
    time: float | None  # time code; None is the default time, or each attribute's earliest where no start is authored
    time_codes_per_second: float
    gprims: list[Gprim] = field(default_factory=list)
    materials: list[Material] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)
    cameras: list[Camera] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    lights: list[Light] = field(default_factory=list)
    prim_counts: dict[str, int] = field(default_factory=dict)  # imageable prims seen, by type name, drawn or not
    diagnostics: Diagnostics = field(default_factory=Diagnostics)

    @property
    def light_paths(self) -> list[str]:
        return [light.path for light in self.lights]

    @property
    def meshes(self) -> list[MeshGeometry]:
        """The meshes of the gprims, each once, in the order of their first use."""
        return list(dict.fromkeys(gprim.mesh for gprim in self.gprims if gprim.mesh is not None))
