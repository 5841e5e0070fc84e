"""AOVs that users register: closed forms of what a lidar and a thermal camera measure, everywhere a plane is named, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import warp as wp
from pxr import Gf, Sdf, Usd, UsdGeom, UsdLux, UsdRender, UsdShade

import hdwarp
from hdwarp.aovs import user_aovs
from hdwarp.aovs.registry import ALIASES, AOVS, aov_spec
from hdwarp.errors import ArgumentError
from hdwarp.sensors.data_types import DATA_TYPES

SIZE = (40, 30)


@wp.struct
class Lidar:
    reflectance: wp.array[wp.float32]  # by material
    power: wp.float32


@wp.struct
class Heat:
    temperature: wp.array[wp.float32]  # by instance row
    air: wp.float32


@wp.func
def intensity(hit: hdwarp.ShadeHit, parameters: Lidar) -> float:
    """power * reflectance * cos(incidence) / distance^2."""
    cosine = wp.abs(wp.dot(hit.geometric_normal, hit.to_viewer))
    return parameters.power * parameters.reflectance[wp.max(hit.material_id, 0)] * cosine / (hit.distance * hit.distance)


@wp.func
def thermal(hit: hdwarp.ShadeHit, parameters: Heat) -> float:
    return parameters.temperature[hit.instance_row] - parameters.air


@wp.func
def place(hit: hdwarp.ShadeHit) -> wp.vec3f:
    return hit.position


@wp.func
def looks_and_base(hit: hdwarp.ShadeHit) -> wp.vec4f:
    return wp.vec4f(hit.base_color[0], hit.base_color[1], hit.base_color[2], hit.roughness)


@wp.func
def facing(hit: hdwarp.ShadeHit) -> float:
    return wp.dot(hit.normal, hit.to_viewer)


@wp.func
def shape_ids(hit: hdwarp.ShadeHit) -> wp.vec4f:
    return wp.vec4f(float(hit.prim_id), float(hit.instance_id), float(hit.element_id), float(hit.triangle_id))


@wp.func
def owner_ids(hit: hdwarp.ShadeHit) -> wp.vec4f:
    return wp.vec4f(float(hit.material_id), float(hit.body_id), float(hit.instance_row), float(hit.world_id))


@wp.func
def weights(hit: hdwarp.ShadeHit) -> wp.vec2f:
    return hit.barycentric


@wp.func
def inner(hit: hdwarp.ShadeHit) -> float:
    return hit.distance


@wp.func
def handed_on(hit: hdwarp.ShadeHit) -> float:
    return inner(hit)


@pytest.fixture(autouse=True)
def registered():
    """Forget what a test has registered."""
    yield
    for name in [name for name, spec in AOVS.items() if spec.shade is not None]:
        hdwarp.unregister_aov(name)


def new_stage():
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    return stage


def make_stage():
    """A ball of radius 1 four metres from a turned, moved camera, a wall behind it; two materials, one of which is bound to the ball."""
    stage = new_stage()
    camera = UsdGeom.Camera.Define(stage, "/camera")
    camera.CreateFocalLengthAttr(18.0)
    camera.AddTransformOp().Set(Gf.Matrix4d().SetRotate(Gf.Rotation((0, 1, 0), 30)) * Gf.Matrix4d().SetTranslate((2, 1, -3)))
    rig = UsdGeom.Xform.Define(stage, "/rig")
    rig.AddTransformOp().Set(Gf.Matrix4d().SetRotate(Gf.Rotation((0, 1, 0), 30)) * Gf.Matrix4d().SetTranslate((2, 1, -3)))
    ball = UsdGeom.Sphere.Define(stage, "/rig/ball")
    ball.AddTranslateOp().Set((0, 0, -4))
    wall = UsdGeom.Mesh.Define(stage, "/rig/wall")
    wall.CreatePointsAttr([(-2, -2, -6), (2, -2, -6), (2, 2, -6), (-2, 2, -6)])
    wall.CreateFaceVertexCountsAttr([4])
    wall.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    wall.CreateDisplayColorAttr([(0.25, 0.5, 0.75)])
    material = UsdShade.Material.Define(stage, "/paint")
    shader = UsdShade.Shader.Define(stage, "/paint/surface")
    shader.CreateIdAttr("UsdPreviewSurface")
    shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).Set((0.1, 0.2, 0.3))
    shader.CreateInput("roughness", Sdf.ValueTypeNames.Float).Set(0.75)
    material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    UsdShade.MaterialBindingAPI.Apply(ball.GetPrim()).Bind(material)
    return stage


def ball_of(frame) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of every pixel's ray, in the camera's axes: whether it meets the ball, distance, hit point and cosine of incidence."""
    height, width = frame.height, frame.width
    y, x = np.mgrid[:height, :width] + 0.5
    ray = np.stack([(x - frame.K[0, 2]) / frame.K[0, 0], -(y - frame.K[1, 2]) / frame.K[1, 1], -np.ones_like(x)], axis=-1)
    ray /= np.linalg.norm(ray, axis=-1, keepdims=True)
    centre = np.array([0, 0, -4.0])
    along = ray @ centre
    under = along**2 - (centre @ centre - 1.0)
    t = along - np.sqrt(np.maximum(under, 0))
    point = ray * t[..., None]
    return under > 0, t, point, -np.sum((point - centre) * ray, axis=-1)


def lidar_parameters(device, reflectance=(0.5,), power=8.0) -> Lidar:
    parameters = Lidar()
    parameters.reflectance = wp.array(reflectance, dtype=wp.float32, device=device)
    parameters.power = power
    return parameters


def test_lidar_intensity_of_a_ball_and_a_wall(device):
    """power * reflectance * cos / d^2, of the ball and of the wall square to the view, by formula; the clear value elsewhere."""
    hdwarp.register_aov("lidar:intensity", intensity, parameters=lidar_parameters(device), clear=-1.0, unit="W", meaning="what comes back")
    frame = hdwarp.render(make_stage(), "/camera", resolution=SIZE, aovs=["lidar:intensity", "primId"], device=device)
    met, t, _, cosine = ball_of(frame)
    values, paths = frame["lidar:intensity"], frame["primId"]
    on_ball = paths == frame.prim_paths.index("/rig/ball")
    assert (on_ball != met).sum() <= 2 and on_ball.sum() > 50
    both = on_ball & met & (cosine > 0.05)  # float32 hits the limb at another place
    np.testing.assert_allclose(values[both], 8.0 * 0.5 * cosine[both] / t[both] ** 2, rtol=2e-4)
    on_wall = paths == frame.prim_paths.index("/rig/wall")
    y, x = np.mgrid[:30, :40] + 0.5
    length = np.sqrt(1 + ((x - frame.K[0, 2]) / frame.K[0, 0]) ** 2 + ((y - frame.K[1, 2]) / frame.K[1, 1]) ** 2)
    np.testing.assert_allclose(values[on_wall], (8.0 * 0.5 / (length**3 * 36.0))[on_wall], rtol=1e-5)
    assert on_wall.any() and (paths < 0).any() and np.all(values[paths < 0] == -1.0)


def test_position_is_from_the_camera_along_the_axes_of_the_world(device):
    """A camera turned by 30 degrees about y: hit points of the ball in its axes, turned by NumPy."""
    hdwarp.register_aov("place", place, components=3, clear=(7, 8, 9))
    frame = hdwarp.render(make_stage(), "/camera", resolution=SIZE, aovs=["place", "primId"], device=device)
    met, _, point, cosine = ball_of(frame)
    angle = np.radians(30)
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    both = met & (cosine > 0.1)
    np.testing.assert_allclose(frame["place"][both], point[both] @ turn.T, atol=2e-5)
    assert np.all(frame["place"][frame["primId"] < 0] == (7, 8, 9))


def test_looks_and_ids_are_those_of_the_planes(device):
    """A material's constants, displayColor without one; every id and weight as its own plane has it, asked for beside it or not."""
    for name, function, components in (
        ("looks", looks_and_base, 4),
        ("shape_ids", shape_ids, 4),
        ("owner_ids", owner_ids, 4),
        ("weights", weights, 2),
        ("facing", facing, 1),
        ("handed_on", handed_on, 1),
    ):
        hdwarp.register_aov(name, function, components=components)
    own = ["looks", "shape_ids", "owner_ids", "weights", "facing", "handed_on"]
    ids = ["primId", "instanceId", "elementId", "triangleId", "materialId", "bodyId", "instanceRow", "worldId"]
    stage = make_stage()
    frame = hdwarp.render(stage, "/camera", resolution=SIZE, aovs=[*own, *ids, "barycentric", "distance_to_camera"], device=device)
    seen = frame["primId"] >= 0
    ball, wall = (frame["primId"] == frame.prim_paths.index(f"/rig/{name}") for name in ("ball", "wall"))
    np.testing.assert_allclose(frame["looks"][ball], np.broadcast_to((0.1, 0.2, 0.3, 0.75), (ball.sum(), 4)), rtol=1e-6)
    np.testing.assert_allclose(frame["looks"][wall], np.broadcast_to((0.25, 0.5, 0.75, 0.5), (wall.sum(), 4)), rtol=1e-6)
    given = np.stack([frame[name] for name in ids], axis=-1)
    np.testing.assert_array_equal(np.concatenate([frame["shape_ids"], frame["owner_ids"]], axis=-1)[seen], given[seen])
    np.testing.assert_array_equal(frame["weights"], frame["barycentric"])
    np.testing.assert_array_equal(frame["handed_on"][seen], frame["distance_to_camera"][seen])
    met, _, _, cosine = ball_of(frame)
    both = met & ball & (cosine > 0.1)
    np.testing.assert_allclose(frame["facing"][both], cosine[both], atol=2e-4)
    alone = hdwarp.render(stage, "/camera", resolution=SIZE, aovs=own, device=device)
    for name in own:
        np.testing.assert_array_equal(alone[name], frame[name])


def test_base_colour_beside_colour_with_shadows(device):
    """Shadow rays put off what makes the looks: the function waits for them."""
    stage = make_stage()
    UsdLux.SphereLight.Define(stage, "/light").AddTranslateOp().Set((0, 3, 0))
    hdwarp.register_aov("looks", looks_and_base, components=4)
    settings = hdwarp.RenderSettings(integrator="preview", shadows=True)
    aovs = ["color", "looks", "primId"]
    frame = hdwarp.render(stage, "/camera", resolution=SIZE, aovs=aovs, settings=settings, device=device)
    ball = frame["primId"] == frame.prim_paths.index("/rig/ball")
    np.testing.assert_allclose(frame["looks"][ball], np.broadcast_to((0.1, 0.2, 0.3, 0.75), (ball.sum(), 4)), rtol=1e-6)


def test_parameters_may_change_between_updates(device):
    """Numbers in arrays are read at each update; numbers and arrays of the struct itself are followed too."""
    with hdwarp.Scene(make_stage(), device=device) as scene:
        rows = scene.index.instances["kind"].size
        parameters = Heat()
        parameters.temperature = wp.full(rows, 20.0, dtype=wp.float32, device=scene.device)
        parameters.air = 0.0
        hdwarp.register_aov("thermal", thermal, parameters=parameters, clear=-273.0)
        sensor = hdwarp.SensorCamera(scene, cameras="/camera", resolution=SIZE)
        out = sensor.allocate(["thermal", "primId"])
        assert out["thermal"].dtype is wp.float32 and out["thermal"].shape == (1, 30, 40)

        def seen():
            sensor.update(None, out)
            values, hit = out["thermal"].numpy(), out["primId"].numpy() >= 0
            assert np.all(values[~hit] == -273.0)
            return np.unique(values[hit])

        assert seen().tolist() == [20.0]
        parameters.temperature.assign(np.arange(rows, dtype=np.float32))
        assert len(seen()) == 2  # ball and wall are two rows
        parameters.air = 5.0
        parameters.temperature.fill_(30.0)
        assert seen().tolist() == [25.0]
        parameters.temperature = wp.full(rows, 40.0, dtype=wp.float32, device=scene.device)
        assert seen().tolist() == [35.0]
        sensor.update(None, out, clear={"thermal": 1.0})
        assert np.all(out["thermal"].numpy()[out["primId"].numpy() < 0] == 1.0)


def test_updates_are_device_work_alone(device, monkeypatch):
    """After the first one nothing is allocated or read back, so that a CUDA graph can hold it; also behind shadow rays."""
    stage = make_stage()
    UsdLux.SphereLight.Define(stage, "/light").AddTranslateOp().Set((0, 3, 0))
    hdwarp.register_aov("lidar", intensity, parameters=lidar_parameters(device))
    hdwarp.register_aov("looks", looks_and_base, components=4)
    with hdwarp.Scene(stage, device=device) as scene:
        settings = hdwarp.RenderSettings(integrator="preview", shadows=True)
        sensor = hdwarp.SensorCamera(scene, cameras="/camera", resolution=SIZE, settings=settings)
        out = sensor.allocate(["color", "lidar", "looks"])
        sensor.update(None, out)
        before = out["lidar"].numpy().copy()
        out["lidar"].zero_()
        with monkeypatch.context() as patch:

            def refuse(*arguments, **options):
                raise AssertionError("host work")

            patch.setattr(type(scene.device.get_allocator()), "allocate", refuse)
            patch.setattr(wp.array, "numpy", refuse)
            sensor.update(None, out)
        np.testing.assert_array_equal(out["lidar"].numpy(), before)


def test_given_rays(device):
    """A lidar that stands a metre before the wall of the stage and looks along rays of its own: cos / d^2 by formula."""
    stage = new_stage()
    wall = UsdGeom.Plane.Define(stage, "/wall")
    wall.CreateWidthAttr(100.0)
    wall.CreateLengthAttr(100.0)
    wall.CreateAxisAttr("X")
    site = UsdGeom.Xform.Define(stage, "/site").GetPrim()
    site.ApplyAPI("HdWarpSiteAPI")
    UsdGeom.Xform(site).AddTranslateOp().Set((-2, 0, 0))
    hdwarp.register_aov("lidar", intensity, parameters=lidar_parameters(device, (1.0,), 1.0))
    hdwarp.register_aov("place", place, components=3)
    angles = np.radians(np.linspace(-60, 60, 9))
    rays = np.zeros((1, 9, 1, 2, 3), np.float32)
    rays[0, :, 0, 1] = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    with hdwarp.Scene(stage, device=device) as scene:
        sensor = hdwarp.SensorCamera(scene, sites="/site", resolution=(9, 1))
        sensor.set_camera_rays(rays)
        out = sensor.allocate(["lidar", "place"])
        sensor.update(None, out)
        np.testing.assert_allclose(out["lidar"].numpy()[0, 0], np.cos(angles) ** 3 / 4.0, rtol=1e-5)
        np.testing.assert_allclose(out["place"].numpy()[0, 0], np.stack([0 * angles + 2, 2 * np.tan(angles), 0 * angles], -1), atol=1e-5)


def test_descriptors_render_vars_and_files(device, tmp_path):
    """A render var's sourceName finds it; buffers, EXR and NPZ hold it, PNG a picture of it."""
    hdwarp.register_aov("lidar", intensity, parameters=lidar_parameters(device), unit="W", meaning="what comes back")
    stage = make_stage()
    var = UsdRender.Var.Define(stage, "/Render/back")
    var.CreateSourceNameAttr("lidar")
    product = UsdRender.Product.Define(stage, "/Render/product")
    product.CreateCameraRel().SetTargets(["/camera"])
    product.CreateResolutionAttr(Gf.Vec2i(*SIZE))
    product.CreateOrderedVarsRel().SetTargets(["/Render/back"])
    frame = hdwarp.render(stage, "/Render/product", device=device)
    assert frame["back"] is frame["lidar"] and frame["lidar"].max() > 0
    for suffix in ("exr", "npz", "png"):
        frame.save(tmp_path / f"a.{suffix}")
    with np.load(tmp_path / "a.npz") as read:
        np.testing.assert_array_equal(read["lidar"], frame["lidar"])
    assert b"what comes back" in (tmp_path / "a.exr").read_bytes()
    with hdwarp.Scene(stage, device=device) as scene:
        descriptor = scene.delegate.default_aov_descriptor("lidar")
        assert (descriptor.format, descriptor.unit, descriptor.multi_sampled) == ("Float32", "W", False)
        assert "lidar" in scene.delegate.aov_names
        buffer = scene.delegate.create_render_buffer("lidar", *SIZE)
        views = scene.delegate.create_views("/camera", SIZE)
        render_pass = scene.delegate.create_render_pass(samples=4)
        color = scene.delegate.create_render_buffer("color", *SIZE)
        while not render_pass.is_converged:
            render_pass.execute(views, {"lidar": buffer, "color": color}, progressive=True)
        with buffer.mapped() as pixels:
            np.testing.assert_array_equal(np.squeeze(pixels), frame["lidar"])


PLUGIN = """
import hdwarp
import warp as wp


@wp.func
def doubled(hit: hdwarp.ShadeHit) -> float:
    return 2.0 * hit.distance


hdwarp.register_aov("doubled", doubled, unit="m")
"""


def test_command_line(tmp_path):
    """--plugin names a file that registers; without it the plane is unknown, and what fails in it is told."""
    make_stage().Export(str(tmp_path / "a.usda"))
    (tmp_path / "doubled.py").write_text(PLUGIN)
    (tmp_path / "wrong.py").write_text("import hdwarp\nhdwarp.register_aov('color', None)\n")
    command = [sys.executable, "-m", "hdwarp", "render", str(tmp_path / "a.usda"), "--resolution", "40x30", "--device", "cpu"]
    command += ["--aov", "doubled", "--aov", "distance_to_camera", "-o", str(tmp_path / "a.npz")]
    ran = subprocess.run([*command, "--plugin", str(tmp_path / "doubled.py")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    with np.load(tmp_path / "a.npz") as read:
        seen = np.isfinite(read["distance_to_camera"])
        np.testing.assert_array_equal(read["doubled"], np.where(seen, 2 * np.where(seen, read["distance_to_camera"], 0), 0))
        assert seen.any()
    for plugin, message in (("wrong.py", "is one of hdWarp's own"), ("none.py", "no such Python file")):
        ran = subprocess.run([*command, "--overwrite", "--plugin", str(tmp_path / plugin)], capture_output=True, text=True, check=False)
        assert ran.returncode != 0 and message in ran.stderr, ran.stderr


def test_registered_anew_and_forgotten(device):
    stage = make_stage()
    with hdwarp.Scene(stage, device=device) as scene:
        hdwarp.register_aov("mine", handed_on)
        sensor = hdwarp.SensorCamera(scene, cameras="/camera", resolution=SIZE)
        out = sensor.allocate(["mine"])
        sensor.update(None, out)
        far = out["mine"].numpy().max()
        hdwarp.register_aov("mine", facing)
        sensor.update(None, out)  # the same arrays
        assert far > 3.0 and out["mine"].numpy().max() <= 1.0001
        hdwarp.unregister_aov("mine")
        with pytest.raises(ArgumentError, match="no AOV is named 'mine'"):
            sensor.update(None, out)
    with pytest.raises(ArgumentError, match="no AOV 'mine' was registered; registered are none"):
        hdwarp.unregister_aov("mine")
    with pytest.raises(ArgumentError, match="no AOV 'color' was registered"):
        hdwarp.unregister_aov("color")


@wp.func
def unannotated(hit, parameters: Lidar) -> float:
    return 0.0


@wp.func
def silent(hit: hdwarp.ShadeHit):
    return hit.distance


@wp.func
def whole(hit: hdwarp.ShadeHit) -> int:
    return hit.prim_id


@wp.func
def too_many(hit: hdwarp.ShadeHit, a: Lidar, b: Lidar) -> float:
    return 0.0


@wp.func
def number(hit: hdwarp.ShadeHit, scale: float) -> float:
    return scale


@wp.func
def other_first(parameters: Lidar) -> float:
    return parameters.power


@wp.func
def broken(hit: hdwarp.ShadeHit) -> float:
    return hit.temperature


def plain(hit, parameters):
    return 0.0


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (plain, {}, "shade_function is a function; give a @wp.func"),
        (unannotated, {}, r"unannotated\(hit, parameters\) does not say of what type hit is"),
        (silent, {}, r"silent\(hit\) does not say what it returns; annotate it"),
        (whole, {}, r"whole\(hit\) returns int; annotate it"),
        (too_many, {}, "takes 3 arguments"),
        (other_first, {}, "is no hdwarp.ShadeHit"),
        (number, {"parameters": 1.0}, r"the second argument of number\(hit, scale\) is no @wp.struct"),
        (intensity, {}, "takes parameters: give parameters=, a Lidar"),
        (intensity, {"parameters": Heat()}, "parameters is a Heat; .* takes an instance of its Lidar"),
        (intensity, {"parameters": 3}, "parameters is a int"),
        (facing, {"parameters": Lidar()}, r"facing\(hit\) takes none"),
        (place, {}, "returns vec3f: give components=3"),
        (facing, {"components": 2}, "give components=1"),
        (facing, {"clear": (1, 2)}, "a clear value of 2 numbers; give 1 or 1"),
        (facing, {"clear": "red"}, "clear value 'red' is no number"),
    ],
)
def test_functions_that_do_not_fit(function, options, message):
    with pytest.raises(ArgumentError, match=message):
        hdwarp.register_aov("mine", function, **options)
    assert "mine" not in AOVS


@pytest.mark.parametrize("name", ["color", "semantic_segmentation", *list(ALIASES)[:4], *DATA_TYPES, "primvars:x", "lpe:C", "", "a b", 3])
def test_names_that_are_taken_or_none(name):
    before = dict(AOVS)
    with pytest.raises(ArgumentError):
        hdwarp.register_aov(name, facing)
    assert before == AOVS


def test_what_is_wrong_within_is_told_at_the_first_use(device):
    hdwarp.register_aov("mine", broken)
    with pytest.raises(ArgumentError, match=r"AOV 'mine': its shade function does not compile: (.|\n)*temperature"):
        hdwarp.render(make_stage(), "/camera", resolution=SIZE, aovs=["mine"], device=device)
    hdwarp.render(make_stage(), "/camera", resolution=SIZE, aovs=["depth"], device=device)


def test_only_what_is_read_is_made():
    """The function's own words decide; one that hands the hit on may read everything."""
    hdwarp.register_aov("mine", facing)
    assert AOVS["mine"].shade.planes == {"normal": "normal"}
    assert user_aovs.planes_behind(["mine", "primId"]) == ["mine", "primId", "normal"]
    hdwarp.register_aov("mine", handed_on)
    assert set(AOVS["mine"].shade.planes) == set(user_aovs.HitPlanes.vars)
    assert aov_spec("mine").dtype is wp.float32


def test_one_pixel_a_thread_gives_the_same_bits(tools, monkeypatch):
    """The kernel that CUDA runs, on the CPU."""
    scene = tools.Scene()
    scene.add_mesh([[-1, -1, 0], [1, -1, 0], [0, 1, 0]], [[0, 1, 2]])
    scene.add(0, mesh=0, translation=(0, 0, -4), prim_id=3)
    setup = tools.Setup(scene, [tools.View(37, 9, np.zeros(3), half_width=0.5)], "cpu")
    hdwarp.register_aov("place", place, components=3, clear=-5)
    hdwarp.register_aov("facing", facing)
    many = setup.resolve(["place", "facing"])
    monkeypatch.setattr("hdwarp.aovs.steps.lane_count", lambda device: 1)
    single = setup.resolve(["place", "facing"])
    assert (many[0]["place"] == -5).any() and (many[0]["facing"] > 0.9).any()
    for name in ("place", "facing"):
        np.testing.assert_array_equal(single[0][name], many[0][name])


@pytest.mark.parametrize("function", [intensity, looks_and_base])
def test_kernels_compile_for_cuda(function, tmp_path):
    """To PTX, which needs no driver; of one function there is one kernel."""
    kernel = user_aovs.user_aov_kernel(function, 1)
    assert kernel is user_aovs.user_aov_kernel(function, 1)
    try:
        (path,) = wp.compile_aot_module(kernel.module, arch=80, module_dir=tmp_path, use_ptx=True)
    except RuntimeError as error:
        if "CUDA" in str(error) and "not" in str(error) and not wp.is_cuda_available():
            pytest.skip(f"this Warp cannot compile for CUDA: {error}")
        raise
    assert ".visible .entry" in path.read_text()
