"""The plan: masks, clear values, stable runs, arguments that do not fit, and kernels that compile for CUDA."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import warp as wp

from hdwarp.aovs import ids, interpolation, motion, pixel_runs, resolve_kernels
from hdwarp.aovs.registry import AOVS, aov_spec
from hdwarp.aovs.resolve import ColourSamples, ResolvePlan, primvars_needed, resolve
from hdwarp.errors import ArgumentError, NotSupported
from hdwarp.shade import colour, lighting

MESH, SPHERE, CUBE = 0, 1, 2
EVERY = [name for name, spec in AOVS.items() if not spec.later]


def make(tools, device, *, masked=0, count=3, size=(21, 10)):
    scene = tools.Scene()
    scene.add_mesh([[-1, -1, 0], [1, -1, 0], [0, 1, 0]], [[0, 1, 2]])
    scene.add(MESH, mesh=0, translation=(0, 0, -4), prim_id=3)
    views = [tools.View(*size, np.array([0.1 * i, 0, 0]), half_width=0.5) for i in range(count)]
    if masked:
        views[masked].masked = 1
    return tools.Setup(scene, views, device)


def outputs_of(setup, names, *, extra=0, fill=5):
    arrays = {}
    for name in names:
        arrays[name] = wp.zeros(setup.pixel_count + extra, dtype=aov_spec(name).dtype, device=setup.device)
        arrays[name].fill_(fill)
    return arrays


def test_masked_views_keep_what_they_hold(tools, device):
    setup = make(tools, device, masked=1)
    images = setup.resolve(EVERY, fill=5)
    for name in EVERY:
        assert np.all(images[1][name] == 5), name
        assert not np.all(images[0][name] == 5), name
        assert not np.all(images[2][name] == 5), name


def test_views_do_not_depend_on_their_company(tools, device):
    """Bits of a view alone and in a batch are the same."""
    batch = make(tools, device).resolve(EVERY)
    for i in range(3):
        scene = make(tools, device)
        alone = tools.Setup(scene.scene, [scene.views[i]], device).resolve(EVERY)[0]
        for name in EVERY:
            np.testing.assert_array_equal(alone[name], batch[i][name], err_msg=name)


def test_nothing_beyond_the_images_is_written(tools, device):
    """Odd widths end inside a block of 16: what follows in memory stays."""
    for size in ((21, 10), (1, 1), (16, 1), (17, 9)):
        setup = make(tools, device, size=size)
        arrays = outputs_of(setup, EVERY, extra=40)
        resolve(*setup.arguments(), arrays, device=device)
        for name in EVERY:
            assert np.all(arrays[name].numpy()[setup.pixel_count :] == 5), (size, name)


def test_each_plane_alone_is_the_same(tools, device):
    """Asking for less changes no bit."""
    setup = make(tools, device)
    together = setup.resolve(EVERY)
    for name in EVERY:
        for alone, all_ in zip(setup.resolve([name]), together, strict=True):
            np.testing.assert_array_equal(alone[name], all_[name], err_msg=name)


def test_clear_values_of_every_plane(tools, device):
    setup = make(tools, device)
    clear = dict.fromkeys(EVERY, 3) | {"normal": (1, 2, 3), "color": (0.25, 0.5, 0.75, 1)}
    for image, hit in zip(setup.resolve(EVERY, clear=clear), setup.hits, strict=True):
        for name in EVERY:
            missed = image[name][~hit.seen]
            np.testing.assert_array_equal(missed, np.broadcast_to(np.asarray(clear[name]), missed.shape), err_msg=name)
            assert not np.all(image[name][hit.seen] == 3) or name in ("primId",), name


def test_a_plan_runs_again_on_the_same_addresses(tools, device):
    """What the record holds may change between updates; nothing is allocated, the outputs stay where they are."""
    setup = make(tools, device)
    arrays = outputs_of(setup, EVERY)
    addresses = {name: array.ptr for name, array in arrays.items()}
    plan = ResolvePlan(*setup.arguments(), arrays, device=device)
    plan.update()
    first = {name: array.numpy().copy() for name, array in arrays.items()}
    setup.visibility.instance.fill_(-1)
    plan.update()
    assert np.all(arrays["primId"].numpy() == -1)
    again = make(tools, device)
    wp.copy(setup.visibility.instance, again.visibility.instance)
    plan.update()
    for name in EVERY:
        np.testing.assert_array_equal(arrays[name].numpy(), first[name], err_msg=name)
        assert arrays[name].ptr == addresses[name]


def test_outputs_of_any_shape(tools, device):
    """(view, H, W) arrays of vectors and (view, H, W, C) arrays of numbers are filled alike."""
    setup = make(tools, device)
    vectors = {
        "Ngeom": wp.zeros((3, 10, 21), dtype=wp.vec3f, device=device),
        "primId": wp.zeros((3, 10, 21), dtype=wp.int32, device=device),
    }
    numbers = {"Ngeom": wp.zeros((3, 10, 21, 3), dtype=wp.float32, device=device)}
    resolve(*setup.arguments(), vectors, device=device)
    resolve(*setup.arguments(), numbers, device=device)
    np.testing.assert_array_equal(vectors["Ngeom"].numpy(), numbers["Ngeom"].numpy())
    assert vectors["primId"].numpy().max() == 3


def test_arguments_that_do_not_fit(tools, device):
    setup = make(tools, device)
    size = setup.pixel_count

    def attempt(outputs, **options):
        resolve(*setup.arguments(options.pop("primvars", None)), outputs, device=device, **options)

    with pytest.raises(ArgumentError, match=r"depth: .*float32.*not of .*int32"):
        attempt({"depth": wp.zeros(size, dtype=wp.int32, device=device)})
    with pytest.raises(ArgumentError, match="depth: a ndarray"):
        attempt({"depth": np.zeros(size)})
    with pytest.raises(ArgumentError, match="contiguous"):
        attempt({"depth": wp.zeros((10, 2 * size), dtype=wp.float32, device=device)[:, :size]})
    with pytest.raises(ArgumentError, match="pixel count"):
        attempt({name: wp.zeros(size + i, dtype=wp.float32, device=device) for i, name in enumerate(("depth", "cameraDepth"))})
    with pytest.raises(ArgumentError, match="no AOV is named 'deepth'"):
        attempt({"deepth": wp.zeros(size, dtype=wp.float32, device=device)})
    with pytest.raises(NotSupported, match="semantic_segmentation"):
        attempt({"semantic_segmentation": wp.zeros(size, dtype=wp.int32, device=device)})
    with pytest.raises(ArgumentError, match="primvars:st"):
        attempt({"primvars:st": wp.zeros(size, dtype=wp.vec2f, device=device)})
    with pytest.raises(ArgumentError, match="clear values for color"):
        attempt({"depth": wp.zeros(size, dtype=wp.float32, device=device)}, clear={"color": 0})
    two = setup.scene.primvar(device, 2)
    with pytest.raises(ArgumentError, match="'normals' has 2 components"):
        attempt({"normal": wp.zeros(size, dtype=wp.vec3f, device=device)}, primvars={"normals": two})


def test_no_outputs_is_no_work(tools, device):
    setup = make(tools, device)
    resolve(*setup.arguments(), {}, device=device)


def test_primvars_needed():
    assert primvars_needed(["depth", "primId"]) == []
    assert primvars_needed(["normal"]) == ["normals"]
    assert primvars_needed(["albedo"]) == ["displayColor"]
    assert set(primvars_needed(["rgba8", "primvars:st", "primvars:st"])) == {"st", "normals", "displayColor"}


def test_samples_are_averaged(tools, device):
    """Four samples: the mean of the colours; bytes are encoded from the mean; masked views keep theirs."""
    setup = make(tools, device, masked=2)
    arrays = outputs_of(setup, ["color", "rgba8"], fill=7)
    samples = ColourSamples(setup.rows, 3, setup.width, setup.height, arrays, device=device)
    rng = np.random.default_rng(0)
    for _ in range(2):  # the second run starts anew
        given = rng.uniform(0, 1, (4, setup.pixel_count, 4)).astype(np.float32)
        given[:, :, 3] = rng.integers(0, 2, given.shape[:2])
        given[..., :3] *= given[..., 3:]
        for i, values in enumerate(given):
            samples.sample.assign(values)
            samples.add(first=i == 0)
        samples.finish(4)
    size = 2 * setup.width * setup.height
    mean = given.mean(axis=0)[:size].astype(float)
    np.testing.assert_allclose(arrays["color"].numpy()[:size], mean, atol=1e-6)
    from hdwarp.shade.encode import srgb_bytes

    alpha = mean[:, 3:]
    whole = np.where(alpha > 0, mean[:, :3] / np.maximum(alpha, 1e-9), 0)
    bytes_ = arrays["rgba8"].numpy()[:size].astype(int)
    assert np.abs(bytes_[:, :3] - srgb_bytes(whole)).max() <= 1
    assert np.mean(bytes_[:, :3] == srgb_bytes(whole)) > 0.999
    np.testing.assert_array_equal(bytes_[:, 3], np.floor(np.where(alpha[:, 0] > 0, alpha[:, 0], 0) * 255 + 0.5))
    for array in arrays.values():
        assert np.all(array.numpy()[size:] == 7)


def test_one_pixel_a_thread_gives_the_same_bits(tools, monkeypatch):
    """The kernels CUDA runs, on the CPU: what a pixel holds does not depend on how pixels are dealt out."""
    scene_setup = make(tools, "cpu", size=(37, 9))
    rng = np.random.default_rng(2)
    scene = scene_setup.scene
    scene.add(SPHERE, rng.normal(size=(3, 3)) * 0.3, (0.3, 0.4, -3))
    scene.add(CUBE, rng.normal(size=(3, 3)) * 0.2, (-0.7, 0.3, -3))
    setup = tools.Setup(scene, scene_setup.views, "cpu")
    columns = scene.primvar("cpu", 3, mesh={0: ("vertex", rng.uniform(size=(3, 3)), None)}, instance={1: (1, 0, 0)})
    names = [*EVERY, "primvars:v"]
    primvars = {"v": columns, "normals": columns, "displayColor": columns}
    blocks = setup.resolve(names, primvars=primvars)
    monkeypatch.setattr("hdwarp.aovs.steps.lane_count", lambda device: 1)
    single = setup.resolve(names, primvars=primvars)
    for one, many in zip(single, blocks, strict=True):
        for name in names:
            np.testing.assert_array_equal(one[name], many[name], err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make_kernel",
    [
        resolve_kernels.geometry_kernel,
        ids.ids_kernel,
        interpolation.primvar_kernel,
        interpolation.normals_kernel,
        motion.motion_kernel,
        colour.colour_kernel,
        colour.samples_kernel,
        functools.partial(lighting.lighting_kernel, given=False, lit=True),
        functools.partial(resolve_kernels.geometry_kernel, given=True),
        functools.partial(lighting.lighting_kernel, given=True, lit=False),
        functools.partial(resolve_kernels.geometry_kernel, swept=True),
        functools.partial(motion.motion_kernel, swept=True),
    ],
)
def test_kernels_compile_for_cuda(make_kernel, tmp_path):
    """To PTX, which needs no driver."""
    kernel = make_kernel(1)
    try:
        files = wp.compile_aot_module(kernel.module, arch=80, module_dir=tmp_path, use_ptx=True)
    except RuntimeError as error:
        if "CUDA" in str(error) and "not" in str(error) and not wp.is_cuda_available():
            pytest.skip(f"this Warp cannot compile for CUDA: {error}")
        raise
    (ptx,) = files
    text = ptx.read_text()
    assert ".visible .entry" in text


def test_jobs_cover_rows_wherever_they_start():
    for lanes in (1, 16):
        for width in (1, 15, 16, 17, 640):
            pixels = pixel_runs.jobs_per_row(width, lanes) * lanes * pixel_runs.block_count(lanes)
            assert pixels >= max(-(-(start + width) // 16) * 16 for start in range(16))
