"""Device tables built by hand and a float64 brute-force caster: what the resolve tests compare with. Shares no code with hdwarp."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import warp as wp

from hdwarp.tables import structs

MESH, SPHERE, CUBE = 0, 1, 2
# UsdPreviewSurface's fallbacks, by MaterialColumns' names.
MATERIAL_DEFAULTS = {
    "diffuse_color": (0.18, 0.18, 0.18),
    "emissive_color": (0.0, 0.0, 0.0),
    "specular_color": (0.0, 0.0, 0.0),
    "use_specular_workflow": 0,
    "metallic": 0.0,
    "roughness": 0.5,
    "clearcoat": 0.0,
    "clearcoat_roughness": 0.01,
    "opacity": 1.0,
    "opacity_threshold": 0.0,
    "opacity_mode": 0,
    "ior": 1.5,
    "occlusion": 1.0,
    "uses_display_color": 0,
    "textured": 0,
    "material_id": 0,
}


def rotation(axis, angle) -> np.ndarray:
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


@dataclass
class Mesh:
    points: np.ndarray  # (P, 3) float32
    triangles: np.ndarray  # (T, 3) points
    corners: np.ndarray  # (T, 3)
    face: np.ndarray  # (T,)
    face_subset: np.ndarray | None = None


@dataclass
class Instance:
    kind: int
    mesh: int
    linear: np.ndarray  # as the tables hold it: float32 values
    translation: np.ndarray
    ids: dict[str, int] = field(default_factory=dict)
    material: int = -1
    subset_materials: tuple[int, ...] = ()


@dataclass
class Hit:
    """Per pixel of a view's window: what the caster saw, all float64, NaN or -1 where it saw nothing."""

    t: np.ndarray
    instance: np.ndarray
    triangle: np.ndarray  # of its mesh
    weights: np.ndarray  # (H, W, 3)
    normal: np.ndarray  # (H, W, 3) world, geometric
    direction: np.ndarray  # (H, W, 3)
    origin: np.ndarray
    object_point: np.ndarray

    @property
    def seen(self) -> np.ndarray:
        return self.instance >= 0

    @property
    def point(self) -> np.ndarray:
        return self.origin + self.direction * self.t[..., None]


@dataclass
class View:
    """A camera. ``window``: x0, y0, width, height of the data window."""

    width: int
    height: int
    position: np.ndarray
    turn: np.ndarray = field(default_factory=lambda: np.eye(3))
    half_width: float = 1.0  # at distance 1, or of the parallel window [m]
    orthographic: bool = False
    near: float = 1e-3
    far: float = np.inf
    window: tuple[int, int, int, int] | None = None
    world: int = 0
    global_offset: tuple[float, float, float] = (0, 0, 0)
    scene_unit: float = 1.0
    exposure: float = 1.0
    masked: int = 0
    centre: tuple[float, float] = (0.5, 0.5)  # principal point / image size

    def row(self) -> structs.ViewRow:
        row = structs.ViewRow()
        step = 2 * self.half_width / self.width
        corner = np.array([0.5 - self.centre[0] * self.width, self.centre[1] * self.height - 0.5]) * step
        right, up, back = self.turn.T
        zero = np.zeros(3)
        across = [right * corner[0] + up * corner[1], right * step, -up * step]
        if self.orthographic:
            origin, shifts = self.position + across[0], across[1:]
            directions = [-back, zero, zero]
        else:
            origin, shifts = self.position, [zero, zero]
            directions = [across[0] - back, across[1], across[2]]
        row.origin = wp.vec3d(*origin)
        row.origin_dx, row.origin_dy = (wp.vec3d(*s) for s in shifts)
        for name, value in zip(("direction", "direction_dx", "direction_dy"), directions, strict=True):
            kind = structs.ViewRow.vars[name].type
            setattr(row, name, kind(*value))
        row.forward = wp.vec3f(*-back)
        row.right, row.up, row.back = wp.vec3f(*right), wp.vec3f(*up), wp.vec3f(*back)
        row.eye = wp.vec3d(*self.position)
        row.orthographic = int(self.orthographic)
        row.near, row.far = self.near, self.far
        row.exposure, row.scene_unit, row.world, row.masked = self.exposure, self.scene_unit, self.world, self.masked
        row.global_offset = wp.vec3d(*self.global_offset)
        row.x0, row.y0, row.width, row.height = self.window or (0, 0, self.width, self.height)
        row.tile_x0, row.tile_y0 = row.x0 // 16, row.y0 // 8
        row.tiles_x = (row.x0 + row.width + 15) // 16 - row.tile_x0
        row.tiles_y = (row.y0 + row.height + 7) // 8 - row.tile_y0
        return row


class Scene:
    def __init__(self) -> None:
        self.meshes: list[Mesh] = []
        self.instances: list[Instance] = []
        self.materials: list[dict] = []

    def add_mesh(self, points, triangles, *, face=None, corners=None, face_subset=None) -> int:
        triangles = np.asarray(triangles, np.int32)
        count = len(triangles)
        face = np.arange(count, dtype=np.int32) if face is None else np.asarray(face, np.int32)
        corners = np.arange(3 * count, dtype=np.int32).reshape(-1, 3) if corners is None else np.asarray(corners, np.int32)
        self.meshes.append(Mesh(np.asarray(points, np.float32), triangles, corners, face, face_subset))
        return len(self.meshes) - 1

    def add(self, kind, linear=None, translation=(0, 0, 0), *, mesh=-1, material=-1, subset_materials=(), **ids) -> int:
        linear = np.eye(3) if linear is None else np.asarray(linear, float)
        instance = Instance(kind, mesh, linear.astype(np.float32).astype(float), np.asarray(translation, float), ids, material)
        instance.subset_materials = tuple(subset_materials)
        self.instances.append(instance)
        return len(self.instances) - 1

    # -- device tables -------------------------------------------------------------------------------------------------

    def mesh_columns(self, device) -> structs.MeshColumns:
        leaves, slots = [], []
        starts = {part: [] for part in ("leaf", "triangle", "point", "corner", "face")}
        totals = dict.fromkeys(starts, 0)
        for mesh in self.meshes:
            count = len(mesh.triangles)
            leaf_count = -(-count // 16)
            padded = np.minimum(np.arange(16 * leaf_count), count - 1)
            corner = mesh.points[mesh.triangles[padded]]  # (16 L, 3, 3)
            corner[count:] = corner[count:, :1]
            leaves.append(corner.reshape(leaf_count, 16, 9).transpose(0, 2, 1).reshape(-1, 16))
            slots.append(np.where(np.arange(16 * leaf_count) < count, padded, -1))
            faces = 0 if mesh.face_subset is None else len(mesh.face_subset)
            sizes = {"leaf": leaf_count, "triangle": count, "point": len(mesh.points), "corner": 3 * count, "face": faces}
            for part, size in sizes.items():
                starts[part].append(totals[part])
                totals[part] += size
        self.leaf_start = starts["leaf"]
        columns = structs.MeshColumns()

        def put(name, dtype, values, shape=()):
            values = np.asarray(values).reshape(-1, *shape)
            columns_dtype = wp.dtype_to_numpy(dtype._wp_scalar_type_ if shape else dtype)
            if len(values) == 0:
                values = np.zeros((1, *shape))
            setattr(columns, name, wp.array(values.astype(columns_dtype), dtype=dtype, device=device))

        put("leaf_vertices", structs.vec16f, np.concatenate(leaves) if leaves else [], (16,))
        put("slot_triangle", wp.int32, np.concatenate(slots) if slots else [])
        for part in ("triangle", "point", "corner", "face"):
            put(f"{part}_start", wp.int32, starts[part])
        put("has_subsets", wp.int32, [mesh.face_subset is not None for mesh in self.meshes])
        put("triangle_face", wp.int32, np.concatenate([m.face for m in self.meshes]) if self.meshes else [])
        put("triangle_points", wp.vec3i, np.concatenate([m.triangles for m in self.meshes]) if self.meshes else [], (3,))
        put("triangle_corners", wp.vec3i, np.concatenate([m.corners for m in self.meshes]) if self.meshes else [], (3,))
        subsets = [m.face_subset for m in self.meshes if m.face_subset is not None]
        put("face_subset", wp.int32, np.concatenate(subsets) if subsets else [])
        return columns

    def instance_columns(self, device) -> structs.InstanceColumns:
        columns = structs.InstanceColumns()
        linear = np.array([i.linear for i in self.instances])
        columns.world_from_object = wp.array(linear, dtype=wp.mat33f, device=device)
        columns.translation = wp.array(np.array([i.translation for i in self.instances]), dtype=wp.vec3d, device=device)
        for name, default in (("world", 0), ("prim_id", 0), ("instance_id", 0), ("body", -1)):
            setattr(columns, name, wp.array([i.ids.get(name, default) for i in self.instances], dtype=wp.int32, device=device))
        columns.source = wp.array(np.arange(len(self.instances), dtype=np.int32), dtype=wp.int32, device=device)
        columns.kind = wp.array([i.kind for i in self.instances], dtype=wp.int32, device=device)
        columns.geometry = wp.array([i.mesh for i in self.instances], dtype=wp.int32, device=device)
        columns.material = wp.array([i.material for i in self.instances], dtype=wp.int32, device=device)
        sizes = [len(i.subset_materials) for i in self.instances]
        columns.subset_start = wp.array(np.cumsum([0, *sizes])[:-1].astype(np.int32), dtype=wp.int32, device=device)
        flat = [m for i in self.instances for m in i.subset_materials] or [-1]
        columns.subset_material = wp.array(flat, dtype=wp.int32, device=device)
        return columns

    def material_columns(self, device) -> structs.MaterialColumns:
        columns = structs.MaterialColumns()
        rows = self.materials or [{}]
        for name, default in MATERIAL_DEFAULTS.items():
            dtype = {tuple: wp.vec3f, int: wp.int32, float: wp.float32}[type(default)]
            setattr(columns, name, wp.array([row.get(name, default) for row in rows], dtype=dtype, device=device))
        columns.texture = wp.array(np.full(11 * len(rows), -1, np.int32), dtype=wp.int32, device=device)
        return columns

    def primvar(self, device, width, *, mesh=None, instance=None) -> structs.PrimvarColumns:
        """``mesh``: mesh -> (interpolation, values (n, width), indices or None); ``instance``: instance -> values (width,)."""
        kinds = {"uniform": 1, "vertex": 2, "faceVarying": 3}
        columns = structs.PrimvarColumns()
        columns.width = width
        values, indices, count = [np.full((1, width), np.nan)], [], 1
        interpolation, first, first_index = (np.full(max(len(self.meshes), 1), v, np.int32) for v in (0, 0, -1))
        for row, (kind, rows, numbers) in (mesh or {}).items():
            interpolation[row], first[row] = kinds[kind], count
            values.append(np.asarray(rows).reshape(-1, width))
            count += len(values[-1])
            if numbers is not None:
                first_index[row] = sum(map(len, indices))
                indices.append(np.asarray(numbers))
        own = np.full(len(self.instances), -1, np.int32)
        for row, value in (instance or {}).items():
            own[row] = count
            values.append(np.asarray(value).reshape(1, width))
            count += 1
        columns.values = wp.array(np.concatenate(values).astype(np.float32).ravel(), dtype=wp.float32, device=device)
        columns.indices = wp.array(np.concatenate(indices or [[0]]).astype(np.int32), dtype=wp.int32, device=device)
        columns.mesh_interpolation = wp.array(interpolation, dtype=wp.int32, device=device)
        columns.mesh_values = wp.array(first, dtype=wp.int32, device=device)
        columns.mesh_indices = wp.array(first_index, dtype=wp.int32, device=device)
        columns.instance_values = wp.array(own, dtype=wp.int32, device=device)
        return columns

    # -- the caster ----------------------------------------------------------------------------------------------------

    def cast(self, view: View) -> Hit:
        """Nearest hit of every pixel of the window within near and far, by trying everything in float64."""
        row = view.row()
        x, y = np.meshgrid(row.x0 + np.arange(row.width), row.y0 + np.arange(row.height))
        at = [np.array([*getattr(row, name)], float) for name in ("direction", "direction_dx", "direction_dy")]
        direction = at[0] + at[1] * x[..., None] + at[2] * y[..., None]
        at = [np.array([*getattr(row, name)], float) for name in ("origin", "origin_dx", "origin_dy")]
        shift = at[1] * x[..., None] + at[2] * y[..., None]
        shape = x.shape
        hit = Hit(
            np.full(shape, np.nan),
            np.full(shape, -1),
            np.full(shape, -1),
            np.full((*shape, 3), np.nan),
            np.full((*shape, 3), np.nan),
            direction,
            at[0] + shift,
            np.full((*shape, 3), np.nan),
        )
        for number, instance in enumerate(self.instances):
            world = instance.ids.get("world", 0)
            inverse = np.linalg.inv(instance.linear)
            offset = at[0] - instance.translation + (np.array(view.global_offset) if world < 0 else 0)
            o, d = (offset + shift) @ inverse.T, direction @ inverse.T
            for t, triangle, weights, normal in self._crossings(instance, o, d):
                better = np.isfinite(t) & (t >= view.near) & (t <= view.far) & ~(t >= hit.t)
                hit.t[better], hit.instance[better], hit.triangle[better] = t[better], number, triangle
                hit.weights[better] = weights[better]
                n = normal @ inverse  # inverse transpose
                hit.normal[better] = (n / np.linalg.norm(n, axis=-1, keepdims=True))[better]
                hit.object_point[better] = (o + d * t[..., None])[better]
        return hit

    def _crossings(self, instance: Instance, o, d):
        with np.errstate(all="ignore"):
            if instance.kind == MESH:
                mesh = self.meshes[instance.mesh]
                corner = mesh.points.astype(float)[mesh.triangles]
                for number, (a, b, c) in enumerate(corner):
                    n = np.cross(b - a, c - a)
                    t = (a - o) @ n / (d @ n)
                    h = o + d * t[..., None] - a
                    wb = np.cross(h, c - a) @ n / (n @ n)
                    wc = np.cross(b - a, h) @ n / (n @ n)
                    weights = np.stack([1 - wb - wc, wb, wc], axis=-1)
                    t = np.where((weights >= 0).all(axis=-1), t, np.inf)
                    yield t, number, weights, np.broadcast_to(n, d.shape)
            elif instance.kind == SPHERE:
                a, b, c = (d * d).sum(-1), (o * d).sum(-1), (o * o).sum(-1) - 1
                root = np.sqrt(b * b - a * c)
                for sign in (-1, 1):
                    t = (-b + sign * root) / a
                    p = o + d * t[..., None]
                    s = np.arctan2(p[..., 1], p[..., 0]) / (2 * np.pi) % 1
                    r = 0.5 + np.arcsin(np.clip(p[..., 2], -1, 1)) / np.pi
                    yield np.where(np.isnan(t), np.inf, t), -1, np.stack([s, r, 0 * s], -1), p
            else:
                for axis in range(3):
                    for side in (-1.0, 1.0):
                        t = (side - o[..., axis]) / d[..., axis]
                        p = o + d * t[..., None]
                        others = [(axis + 1) % 3, (axis + 2) % 3]
                        inside = (np.abs(p[..., others]) <= 1).all(-1)
                        n = np.zeros(3)
                        n[axis] = side
                        weights = np.stack([p[..., others[0]] / 2 + 0.5, p[..., others[1]] / 2 + 0.5, 0 * t], -1)
                        yield np.where(inside, t, np.inf), -1, weights, np.broadcast_to(n, d.shape)


@dataclass
class Setup:
    """Several views of a scene, their record filled by the caster, ready to resolve."""

    scene: Scene
    views: list[View]
    device: object
    hits: list[Hit] = field(init=False)

    def __post_init__(self) -> None:
        self.meshes = self.scene.mesh_columns(self.device)
        self.instances = self.scene.instance_columns(self.device)
        self.materials = self.scene.material_columns(self.device)
        rows = [view.row() for view in self.views]
        record = output = 0
        for row in rows:
            row.record, row.output = record, output
            record += 128 * row.tiles_x * row.tiles_y
            output += row.width * row.height
        slot, instance = np.full(record, 12345678), np.full(record, 12345678)  # outside the windows: nobody may read it
        key = np.full(record, np.nan, np.float32)
        self.hits = [self.scene.cast(view) for view in self.views]
        for view, row, hit in zip(self.views, rows, self.hits, strict=True):
            x, y = np.meshgrid(row.x0 + np.arange(row.width), row.y0 + np.arange(row.height))
            at = row.record + (y - 8 * row.tile_y0) * 16 * row.tiles_x + x - 16 * row.tile_x0
            mesh = np.array([i.mesh for i in self.scene.instances])[hit.instance]
            first = 16 * np.array([*self.scene.leaf_start, 0])[mesh]
            with np.errstate(invalid="ignore"):
                leaving = (hit.normal * hit.direction).sum(-1) > 0
            slot[at] = np.where(hit.seen, np.where(mesh >= 0, first + hit.triangle, leaving), -1)
            instance[at] = hit.instance
            noise = 1 + 1e-5 * np.sin(np.arange(at.size)).reshape(at.shape)  # the record is only so good
            with np.errstate(all="ignore"):
                key[at] = np.where(hit.seen, -hit.t * noise if view.orthographic else noise / hit.t, 0)
        self.visibility = structs.Visibility()
        self.visibility.slot = wp.array(slot, dtype=wp.int32, device=self.device)
        self.visibility.instance = wp.array(instance, dtype=wp.int32, device=self.device)
        self.visibility.key = wp.array(key, dtype=wp.float32, device=self.device)
        self.rows = wp.array(rows, dtype=structs.ViewRow, device=self.device)
        self.pixel_count = output
        self.width, self.height = max(r.width for r in rows), max(r.height for r in rows)

    def arguments(self, primvars=None) -> tuple:
        return (
            self.rows,
            len(self.views),
            self.width,
            self.height,
            self.meshes,
            self.instances,
            self.materials,
            primvars or {},
            self.visibility,
        )

    def resolve(self, names, *, primvars=None, clear=None, fill=None) -> list[dict[str, np.ndarray]]:
        """The AOVs ``names`` of every view as NumPy arrays."""
        from hdwarp.aovs.registry import aov_spec
        from hdwarp.aovs.resolve import resolve

        outputs = {}
        for name in names:
            width = primvars[name.split(":", 1)[1]].width if name.startswith("primvars:") else None
            outputs[name] = wp.empty(self.pixel_count, dtype=aov_spec(name, components=width).dtype, device=self.device)
            outputs[name].fill_(77 if fill is None else fill)
        resolve(*self.arguments(primvars), outputs, clear=clear, device=self.device)
        images, start = [], 0
        for hit in self.hits:
            shape = hit.t.shape
            size = hit.t.size
            arrays = {name: array.numpy()[start : start + size] for name, array in outputs.items()}
            images.append({name: array.reshape(*shape, *array.shape[1:]) for name, array in arrays.items()})
            start += size
        return images
