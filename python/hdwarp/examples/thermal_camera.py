"""examples.thermal_camera: a soft block is squeezed between two jaws and warms; a thermal camera watches it.

    python -m hdwarp.examples.thermal_camera [--cycles 5] [--out DIR]

The block is of tetrahedra. How it deforms is given (it is no simulation): the jaws are keyframed bodies, the block keeps its volume exactly
and bulges between them. Its heat is computed: of every tetrahedron whose Green strain E changes by dE, L |dE| V is released; heat spreads
along edges, and the surface goes toward the temperature of the air, and of the jaws and the ground where these touch it. L, the spreading
and the cooling are exaggerated, so that one squeeze shows.

Every frame the points and temperatures go to the scene by `Scene.set_points` and `Scene.set_primvar`, all on the device. The images are a
plane of this example's own, by `hdwarp.register_aov`: a function makes a temperature of what a pixel hit (prim, triangle and its weights,
instance). Any such quantity can be imaged without a word in the renderer. The temperatures of jaws and ground are user attributes of their
prims.
"""

from __future__ import annotations

import math
import sys
import time
from itertools import product

import numpy as np
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

import hdwarp
from hdwarp import State
from hdwarp.examples._shared import arguments_of, save_picture, side_by_side

BLOCK, JAWS, CAMERA = "/World/block", ("/World/jaw_left", "/World/jaw_right"), "/World/camera"
SIZE, CELLS = (0.14, 0.09, 0.09), 6  # metres, cells along each side
JAW = (0.025, 0.11, 0.12)
AIR, JAW_TEMPERATURE, GROUND_TEMPERATURE, BACKGROUND = 20.0, 17.0, 19.5, 12.0  # deg C
LOSS = 19.0e6  # J/m^3 a unit of strain change
CAPACITY = 1100.0 * 1500.0  # density times specific heat, J/(m^3 K)
CONDUCTANCE = 1.5  # W/K along an edge
AIR_RATE, JAW_RATE, GROUND_RATE = 1.8, 2.5, 0.3  # 1/s, of the surface
FPS, PERIOD = 30, 5.0
# Seconds into a cycle; gap between each jaw and the block at rest [m]; length of the block between the jaws over that at rest.
KEYS = np.array(
    [
        (0.0, 0.02, 1.0),
        (1.0, 0.02, 1.0),  # settled
        (1.3, 0.0, 1.0),  # the jaws touch
        (1.7, 0.0, 0.7),
        (2.2, 0.0, 0.7),  # squeezed
        (2.5, 0.0, 1.0),  # released: nothing holds the block any more
        (2.8, 0.02, 1.0),
        (PERIOD, 0.02, 1.0),
    ]
)
RELEASED = 2.5
MOMENTS = {"settled": 1.0, "squeezed": 2.2, "released": RELEASED + 1 / FPS, "cooled": 4.9}  # seconds
# Ironbow, sRGB, evenly spaced over the range of the map.
PICTURE = (320, 240)
COLDEST, HOTTEST = 16.0, 36.0
IRONBOW = np.array(
    [(0, 0, 10), (30, 0, 120), (110, 0, 157), (175, 15, 145), (220, 60, 70), (240, 115, 10), (250, 175, 0), (255, 230, 90), (255, 255, 246)]
)


@wp.func
def barrel(rest: wp.vec3f, a: wp.float32, half: wp.float32):
    """Where the point ``rest`` of the block is. Across the squeeze all grows by g(x), g^2 = 1 + a cos^2(pi x / length), which is 1 at the
    jaws; along it dx'/dx = 1 / g^2, of which this is the integral: the volume of every piece stays what it is."""
    angle = 0.5 * wp.pi * rest[0] / half
    root = wp.sqrt(1.0 + a)
    along = 2.0 * half / (wp.pi * root) * wp.atan2(wp.sin(angle), wp.cos(angle) * root)
    g = wp.sqrt(1.0 + a * wp.cos(angle) * wp.cos(angle))
    return wp.vec3f(along, g * rest[1], g * rest[2])


@wp.func
def edges_of(p: wp.array[wp.vec3f], tet: wp.vec4i):
    """Columns: edges of a tetrahedron from its first corner."""
    return wp.matrix_from_cols(p[tet[1]] - p[tet[0]], p[tet[2]] - p[tet[0]], p[tet[3]] - p[tet[0]])


@wp.kernel(enable_backward=False)
def deform(rest: wp.array[wp.vec3f], a: wp.float32, half: wp.float32, points: wp.array[wp.vec3f]):
    i = wp.tid()
    points[i] = barrel(rest[i], a, half)


@wp.kernel(enable_backward=False)
def place_jaws(rows: wp.array[wp.int32], x: wp.float32, z: wp.float32, body_q: wp.array[wp.transformf]):
    i = wp.tid()
    side = float(2 * i - 1)
    body_q[rows[i]] = wp.transformf(wp.vec3f(side * x, 0.0, z), wp.quat_identity(dtype=wp.float32))


@wp.kernel(enable_backward=False)
def release_heat(
    points: wp.array[wp.vec3f],
    tets: wp.array[wp.vec4i],
    rest_inverse: wp.array[wp.mat33f],
    volume: wp.array[wp.float32],
    strain: wp.array[wp.mat33f],
    heat: wp.array[wp.float32],
):
    """A tetrahedron a thread: q = L |dE| V, a quarter of it to each corner [J]."""
    i = wp.tid()
    tet = tets[i]
    f = edges_of(points, tet) * rest_inverse[i]
    green = 0.5 * (wp.transpose(f) * f - wp.identity(n=3, dtype=wp.float32))
    change = green - strain[i]
    strain[i] = green
    q = LOSS * wp.sqrt(wp.ddot(change, change)) * volume[i]
    for corner in range(4):
        wp.atomic_add(heat, tet[corner], 0.25 * q)


@wp.kernel(enable_backward=False)
def spread_heat(
    dt: wp.float32,
    touching: wp.bool,
    heat: wp.array[wp.float32],
    capacity: wp.array[wp.float32],
    starts: wp.array[wp.int32],
    neighbours: wp.array[wp.int32],
    touch: wp.array[wp.int32],
    before: wp.array[wp.float32],
    after: wp.array[wp.float32],
):
    """A point a thread: its share of the heat, what comes along its edges, and what its surface gives away."""
    i = wp.tid()
    joules = heat[i]
    heat[i] = 0.0
    for k in range(starts[i], starts[i + 1]):
        joules += dt * CONDUCTANCE * (before[neighbours[k]] - before[i])
    t = before[i] + joules / capacity[i]
    rate = 0.0
    outside = AIR
    if touch[i] == 1:
        rate = AIR_RATE
    elif touch[i] == 2:
        rate = GROUND_RATE
        outside = GROUND_TEMPERATURE
    elif touch[i] == 3:
        rate = AIR_RATE
        if touching:
            rate = JAW_RATE
            outside = JAW_TEMPERATURE
    after[i] = outside + (t - outside) * wp.exp(-rate * dt)


@wp.struct
class Temperatures:
    """What the thermal camera asks of the scene."""

    block: wp.int32  # its primId
    triangle_points: wp.array2d[wp.int32]  # of the block
    of_points: wp.array[wp.float32]  # of the block
    of_instances: wp.array[wp.float32]  # of everything else


@wp.func
def temperature_at(hit: hdwarp.ShadeHit, temperatures: Temperatures) -> float:
    """Of what a pixel sees: between the points of a triangle of the block, else by instance."""
    t = temperatures.of_instances[hit.instance_row]
    if hit.prim_id == temperatures.block:
        triangle, b = hit.triangle_id, hit.barycentric
        t = (
            b[0] * temperatures.of_points[temperatures.triangle_points[triangle, 0]]
            + b[1] * temperatures.of_points[temperatures.triangle_points[triangle, 1]]
            + (1.0 - b[0] - b[1]) * temperatures.of_points[temperatures.triangle_points[triangle, 2]]
        )
    return t


def make_tetrahedra() -> tuple[np.ndarray, np.ndarray]:
    """(P, 3) points, the block's bottom at height 0, and (T, 4) corners: five a cell, every second one mirrored, so they meet."""
    n = CELLS + 1
    grid = np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, n)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    points = (grid + (0.0, 0.0, 0.5)) * SIZE
    number = np.arange(n**3).reshape(n, n, n)
    tets = []
    for cell in product(range(CELLS), repeat=3):
        mirror = sum(cell) % 2
        corner = {(x ^ mirror, y, z): number[cell[0] + x, cell[1] + y, cell[2] + z] for x, y, z in product((0, 1), repeat=3)}
        for four in (
            ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)),
            ((1, 1, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1)),
            ((1, 0, 1), (0, 0, 1), (1, 1, 1), (1, 0, 0)),
            ((0, 1, 1), (1, 1, 1), (0, 0, 1), (0, 1, 0)),
            ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)),
        ):
            tets.append([corner[bits] for bits in four])
    tets = np.array(tets)
    turned = np.linalg.det(points[tets[:, 1:]] - points[tets[:, :1]]) < 0.0
    tets[turned] = tets[turned][:, [0, 2, 1, 3]]
    return points, tets


def surface_of(tets: np.ndarray) -> np.ndarray:
    """(n, 3) the triangles that belong to one tetrahedron only, facing outward."""
    faces = tets[:, [[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]]].reshape(-1, 3)
    _, first, count = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    return faces[np.sort(first[count == 1])]


def make_stage(points: np.ndarray, triangles: np.ndarray) -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/World").GetPrim())
    block = UsdGeom.Mesh.Define(stage, BLOCK)
    block.CreatePointsAttr(points.astype(np.float32))
    block.CreateFaceVertexCountsAttr(np.full(len(triangles), 3))
    block.CreateFaceVertexIndicesAttr(triangles.reshape(-1))
    block.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    block.CreateDisplayColorAttr([(0.12, 0.45, 0.6)])
    primvars = UsdGeom.PrimvarsAPI(block)
    primvars.CreatePrimvar("temperature", Sdf.ValueTypeNames.FloatArray, UsdGeom.Tokens.vertex).Set(np.full(len(points), AIR, np.float32))
    for path in JAWS:
        jaw = UsdGeom.Xform.Define(stage, path)
        UsdPhysics.RigidBodyAPI.Apply(jaw.GetPrim()).CreateKinematicEnabledAttr(True)
        plate = UsdGeom.Cube.Define(stage, f"{path}/plate")
        plate.CreateSizeAttr(1.0)
        plate.CreateDisplayColorAttr([(0.45, 0.46, 0.5)])
        plate.AddScaleOp().Set(Gf.Vec3f(*JAW))
        set_temperature(plate, JAW_TEMPERATURE)
    ground = UsdGeom.Plane.Define(stage, "/World/ground")
    ground.CreateWidthAttr(1.0)
    ground.CreateLengthAttr(1.2)
    ground.CreateDisplayColorAttr([(0.3, 0.27, 0.24)])
    set_temperature(ground, GROUND_TEMPERATURE)
    camera = hdwarp.author.add_camera(stage, CAMERA, fov=0.73, clipping_range=(0.05, 10.0), resolution=(192, 144))
    hdwarp.author.look_at(camera, eye=(0.1, -0.32, 0.26), target=(0.0, 0.0, 0.05))
    return stage


def set_temperature(gprim: UsdGeom.Gprim, value: float) -> None:
    gprim.GetPrim().CreateAttribute("thermal:surface_temperature", Sdf.ValueTypeNames.Float, custom=True).Set(value)


def key_at(seconds: float) -> tuple[float, float]:
    """(gap [m], length ratio), linear between the keys."""
    gap, ratio = (float(np.interp(seconds % PERIOD, KEYS[:, 0], KEYS[:, column])) for column in (1, 2))
    return gap, ratio


class Block:
    """The block's state on the device: points, strain, heat and temperature."""

    def __init__(self, points: np.ndarray, tets: np.ndarray, triangles: np.ndarray, device: wp.Device) -> None:
        edges = np.swapaxes(points[tets[:, 1:]] - points[tets[:, :1]], 1, 2)  # columns
        volume = np.linalg.det(edges) / 6.0
        assert volume.min() > 0.0
        assert math.isclose(volume.sum(), math.prod(SIZE), rel_tol=1e-9)  # the tetrahedra fill the block
        capacity = np.bincount(tets.reshape(-1), np.repeat(volume / 4.0, 4), len(points)) * CAPACITY
        pairs = np.unique(np.sort(tets[:, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]].reshape(-1, 2), axis=1), axis=0)
        pairs = np.concatenate([pairs, pairs[:, ::-1]])
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        # What touches a point: nothing (inside), air, the ground, a jaw.
        touch = np.zeros(len(points), np.int32)
        touch[np.unique(triangles)] = 1
        touch[points[:, 2] < 1e-9] = 2
        touch[np.abs(points[:, 0]) > 0.5 * SIZE[0] - 1e-9] = 3

        def on_device(values: np.ndarray, dtype: type) -> wp.array:
            return wp.array(values, dtype=dtype, device=device)

        self.device, self.half = device, 0.5 * SIZE[0]
        self.rest = on_device(points.astype(np.float32), wp.vec3f)
        self.points = wp.clone(self.rest)
        self.tets = on_device(tets.astype(np.int32), wp.vec4i)
        self.rest_inverse = on_device(np.linalg.inv(edges).astype(np.float32), wp.mat33f)
        self.volume = on_device(volume.astype(np.float32), wp.float32)
        self.strain = wp.zeros(len(tets), dtype=wp.mat33f, device=device)
        self.heat = wp.zeros(len(points), dtype=wp.float32, device=device)
        self.capacity = on_device(capacity.astype(np.float32), wp.float32)
        self.starts = on_device(np.searchsorted(pairs[:, 0], np.arange(len(points) + 1)).astype(np.int32), wp.int32)
        self.neighbours = on_device(pairs[:, 1].astype(np.int32), wp.int32)
        self.touch = on_device(touch, wp.int32)
        self.temperature = wp.full(len(points), AIR, dtype=wp.float32, device=device)
        self._before = wp.clone(self.temperature)

    def step(self, dt: float, gap: float, ratio: float) -> None:
        a = 1.0 / ratio**2 - 1.0  # with it the block is `ratio` of its length
        wp.launch(deform, dim=len(self.rest), inputs=[self.rest, a, self.half], outputs=[self.points], device=self.device)
        inputs = [self.points, self.tets, self.rest_inverse, self.volume, self.strain, self.heat]
        wp.launch(release_heat, dim=len(self.tets), inputs=inputs, device=self.device)
        wp.copy(self._before, self.temperature)
        inputs = [dt, gap < 1e-6, self.heat, self.capacity, self.starts, self.neighbours, self.touch, self._before]
        wp.launch(spread_heat, dim=len(self.rest), inputs=inputs, outputs=[self.temperature], device=self.device)

    def volume_now(self) -> float:
        points, tets = self.points.numpy().astype(np.float64), self.tets.numpy()
        return float(np.linalg.det(points[tets[:, 1:]] - points[tets[:, :1]]).sum() / 6.0)


def register_temperature(scene: hdwarp.Scene, block: Block) -> None:
    """From here on `temperature` is a plane like any other. What the arrays hold is read at every update."""
    temperatures = Temperatures()
    temperatures.block = scene.index.prim_paths.index(BLOCK)
    temperatures.triangle_points = wp.array(scene.meshes.triangle_points(BLOCK), dtype=wp.int32, device=scene.device)
    temperatures.of_points = block.temperature
    temperatures.of_instances = scene.instances.attribute("thermal:surface_temperature")
    hdwarp.register_aov("temperature", temperature_at, parameters=temperatures, clear=BACKGROUND, unit="deg C")


class ThermalCamera:
    """A camera whose images are temperatures [deg C]."""

    def __init__(self, scene: hdwarp.Scene, resolution: tuple[int, int] | None = None) -> None:
        self.scene, self.block = scene, scene.index.prim_paths.index(BLOCK)
        self.sensor = hdwarp.SensorCamera(scene, cameras=CAMERA, resolution=resolution)
        self.hits = self.sensor.allocate(["temperature", "primId", "position", "primvars:temperature"])
        self.image = self.hits["temperature"]

    def update(self, state: State) -> None:
        self.sensor.update(state, self.hits)

    def of_block(self) -> np.ndarray:
        """Temperatures of the pixels that see the block; they are the primvar's, which the renderer interpolates itself."""
        seen = self.hits["primId"].numpy() == self.block
        image = self.image.numpy()[seen]
        assert np.abs(image - self.hits["primvars:temperature"].numpy()[seen]).max() < 1e-4
        return image

    def height_of_block(self) -> float:
        """Of the highest point that a pixel sees [m]."""
        seen = self.hits["primId"].numpy() == self.block
        return float(self.hits["position"].numpy()[seen][:, 2].max() + self.scene.worlds.origin[0, 2])

    def of_jaws(self) -> np.ndarray:
        jaws = [self.scene.index.prim_paths.index(f"{path}/plate") for path in JAWS]
        return self.image.numpy()[np.isin(self.hits["primId"].numpy(), jaws)]


def ironbow(temperature: np.ndarray) -> np.ndarray:
    """(H, W) deg C -> (H, W, 3) uint8 sRGB."""
    at = np.clip((temperature - COLDEST) / (HOTTEST - COLDEST), 0.0, 1.0) * (len(IRONBOW) - 1)
    channels = [np.interp(at, np.arange(len(IRONBOW)), IRONBOW[:, i]) for i in range(3)]
    return np.round(np.stack(channels, axis=-1)).astype(np.uint8)


def run(cycles: int, device: str | None, folder) -> dict[str, float]:
    points, tets = make_tetrahedra()
    triangles = surface_of(tets)
    frames = round(PERIOD * FPS)
    hottest = np.zeros((cycles, frames))
    mean = np.zeros((cycles, frames))
    moments: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    pictures: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    with hdwarp.Scene(make_stage(points, triangles), device=device) as scene:
        block, state = Block(points, tets, triangles, scene.device), scene.state()
        register_temperature(scene, block)
        camera, large = ThermalCamera(scene), ThermalCamera(scene, PICTURE)
        eye = hdwarp.SensorCamera(scene, cameras=CAMERA, resolution=PICTURE, samples=9, clear={"rgba8": (205, 212, 220, 255)})
        colour = eye.allocate(["rgba8"])
        rows = wp.array([scene.bodies.label.index(path) for path in JAWS], dtype=wp.int32, device=scene.device)
        for frame in range(cycles * frames):
            seconds = frame / FPS
            gap, ratio = key_at(seconds)
            block.step(1.0 / FPS, gap, ratio)
            x = block.half * ratio + gap + 0.5 * JAW[0]
            wp.launch(place_jaws, dim=2, inputs=[rows, x, 0.5 * JAW[2]], outputs=[state.body_q], device=scene.device)
            scene.set_points(BLOCK, block.points)
            scene.set_primvar(BLOCK, "temperature", block.temperature)
            camera.update(state)
            seen = camera.of_block()
            hottest[frame // frames, frame % frames], mean[frame // frames, frame % frames] = seen.max(), seen.mean()
            for name, moment in MOMENTS.items():
                if round(moment * FPS) == frame:
                    moments[name] = seen, camera.of_jaws()
                    assert abs(block.volume_now() / math.prod(SIZE) - 1.0) < 0.02  # exact but for straight edges
                    assert abs(camera.height_of_block() - SIZE[2] / ratio) < 0.003  # what is drawn is the block as it is now
                    if folder is not None:
                        eye.update(state, colour)
                        large.update(state)
                        pictures[name] = colour["rgba8"].numpy()[0, ..., :3].copy(), ironbow(large.image.numpy()[0])
    check(moments, hottest, mean)
    if folder is not None:
        line = np.full((4, PICTURE[0], 3), 255, np.uint8)
        stacked = [np.concatenate([plain, line, thermal]) for plain, thermal in pictures.values()]
        print("wrote", save_picture(folder, "thermal_camera.png", side_by_side(stacked)))
    return {name: float(seen.max()) for name, (seen, _) in moments.items()}


def check(moments: dict[str, tuple[np.ndarray, np.ndarray]], hottest: np.ndarray, mean: np.ndarray) -> None:
    settled, squeezed, released, cooled = (moments[name][0] for name in MOMENTS)
    assert np.ptp(settled) < 0.2, np.ptp(settled)  # uniform
    assert squeezed.mean() > settled.mean() + 2.0, (squeezed.mean(), settled.mean())
    assert released.mean() > squeezed.mean() + 2.0, (released.mean(), squeezed.mean())
    for peaks in (hottest.argmax(axis=1) / FPS, mean.argmax(axis=1) / FPS):
        assert ((peaks >= RELEASED) & (peaks <= RELEASED + 0.1)).all(), peaks  # hottest when it has just been let go
    assert cooled.max() < released.max() - 4.0, (cooled.max(), released.max())
    for seen, jaws in moments.values():
        assert np.allclose(jaws, JAW_TEMPERATURE)
        assert jaws.max() < seen.min(), (jaws.max(), seen.min())
    if len(hottest) > 2:  # after two cycles each is as the one before
        assert (np.abs(np.diff(hottest.max(axis=1)))[1:] < 0.02 * hottest.max(axis=1)[1:-1]).all(), hottest.max(axis=1)
        assert (np.abs(np.diff(mean.max(axis=1)))[1:] < 0.02 * mean.max(axis=1)[1:-1]).all(), mean.max(axis=1)


def main(arguments: list[str] | None = None) -> int:
    parser = arguments_of("thermal_camera", __doc__)
    parser.add_argument("--cycles", type=int, default=5, help="how often the block is squeezed (default 5)")
    options = parser.parse_args(arguments)
    if options.cycles < 1:
        parser.error("--cycles must be 1 or more")
    start = time.perf_counter()
    hottest = run(options.cycles, options.device, options.out)
    told = ", ".join(f"{name} {value:.1f}" for name, value in hottest.items())
    print(f"ok: hottest pixel of the block [deg C]: {told}; {options.cycles} cycles in {time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
