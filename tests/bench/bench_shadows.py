"""Shadow rays of one light over a picture against Open3D's Embree (`test_occlusions`) tracing as many rays in the same process.

    python tests/bench/bench_shadows.py [--threads N] [--rounds N] [--only NAME,...]

Ours is `Shadows.look`: it makes the rays, traces them and gathers what is free; theirs is the tracing alone, of just the pixels that have a
ray. Runs are interleaved; a line gives the median ratio and, for orientation, the best times.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

import numpy as np
import warp as wp
from pxr import Gf, Usd, UsdGeom, UsdLux, Vt

wp.config.log_level = wp.LOG_ERROR

_spec = importlib.util.spec_from_file_location("hdwarp_bench_trace", Path(__file__).parent / "bench_trace.py")
trace = sys.modules[_spec.name] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(trace)

import hdwarp  # noqa: E402
from hdwarp.launch import thread_count  # noqa: E402
from hdwarp.shade import plan  # noqa: E402
from hdwarp.shade.shadows import Shadows  # noqa: E402

WIDTH, HEIGHT = 640, 480
LIGHT = np.array([2.0, 3.0, 2.5])  # where a point light is, and whence a distant one shines


class KeptShadows(Shadows):
    """Keeps what it was last asked, to be asked again."""

    last: Shadows

    def look(self, *arguments, **options) -> None:
        KeptShadows.last, self.asked = self, (arguments, options)
        super().look(*arguments, **options)

    def again(self) -> None:
        super().look(*self.asked[0], **self.asked[1])


def geometry(rings: int) -> tuple[np.ndarray, np.ndarray]:
    """The bumpy sphere of `bench_trace` on a floor, which fills the rest of the picture and takes its shadow."""
    points, triangles = trace.tools.bumpy_sphere(rings)
    floor = np.array([(-50, -1.1, 20), (50, -1.1, 20), (50, -1.1, -80), (-50, -1.1, -80)], np.float32)
    return np.concatenate([points, floor]), np.concatenate([triangles, len(points) + np.array([[0, 1, 2], [0, 2, 3]], np.int32)])


def lit_stage(points: np.ndarray, triangles: np.ndarray, kind: str) -> Usd.Stage:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/mesh")
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(points))
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(triangles), 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(triangles.ravel()))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    camera = UsdGeom.Camera.Define(stage, "/camera")
    look = Gf.Matrix4d().SetLookAt(Gf.Vec3d(0, 1, 3), Gf.Vec3d(0, -0.3, 0), Gf.Vec3d(0, 1, 0)).GetInverse()
    camera.AddTransformOp().Set(look)
    camera.CreateFocalLengthAttr(12.0)
    camera.CreateHorizontalApertureAttr(10.0 * WIDTH / HEIGHT)
    camera.CreateVerticalApertureAttr(10.0)
    if kind == "point":
        light = UsdLux.SphereLight.Define(stage, "/light")
        light.CreateTreatAsPointAttr(True)
        light.AddTranslateOp().Set(Gf.Vec3d(*LIGHT))
    else:
        light = UsdLux.DistantLight.Define(stage, "/light")
        light.CreateAngleAttr(0.0)
        light.AddTransformOp().Set(Gf.Matrix4d().SetLookAt(Gf.Vec3d(*LIGHT), Gf.Vec3d(0), Gf.Vec3d(0, 1, 0)).GetInverse())
    return stage


def case(rings: int, kind: str) -> tuple[trace.Runs, int]:
    """(the two runs, rays)."""
    import open3d

    points, triangles = geometry(rings)
    plan.Shadows = KeptShadows
    settings = hdwarp.RenderSettings(integrator="preview")
    hdwarp.render(
        lit_stage(points, triangles, kind), "/camera", resolution=(WIDTH, HEIGHT), aovs=["color"], device="cpu", settings=settings
    )
    shadows = KeptShadows.last
    rays, bundle = shadows._rays, shadows._bundles.rows.numpy()[0]
    ways, limits = rays.directions.numpy(), rays.limits.numpy()
    used = (ways != 0).any(axis=1)
    ways, limits = ways[used], limits[used]
    if kind == "point":  # ours start at the light
        starts = bundle["origin"] + ways * limits[:, 1:]
        ways = (bundle["origin"] + ways * limits[:, :1] - starts).astype(np.float32)
        far = 1.0
    else:
        starts, far = bundle["origin"] + rays.origins.numpy()[used], np.inf
    tensor = open3d.core.Tensor(np.concatenate([starts, ways], -1).astype(np.float32))
    caster, threads = open3d.t.geometry.RaycastingScene(), thread_count()
    caster.add_triangles(open3d.core.Tensor(points), open3d.core.Tensor(triangles.astype(np.uint32)))

    def theirs() -> object:
        return caster.test_occlusions(tensor, tnear=0.0, tfar=far, nthreads=threads)

    differ = (theirs().numpy() != shadows._blocked.numpy()[used]).mean()
    assert differ < 0.01, f"{differ:.1%} of the rays are blocked for one and not for the other"
    return {"Open3D": theirs, "shadows": shadows.again}, int(used.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, help="threads on both sides; default: all cores")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--only", default="", help="names of cases, comma separated")
    options = parser.parse_args()
    chosen = [name for name in options.only.split(",") if name]
    with trace.tools.threads(options.threads):
        print(f"{thread_count()} threads, {options.rounds} rounds")
        for kind in ("point", "distant"):
            for size, rings in (("25k", 80), ("638k", 400)):
                name = f"{kind}-{size}"
                if not chosen or name in chosen:
                    runs, count = case(rings, kind)
                    trace.report(f"{name} ({count} rays)", runs, options.rounds, faster=False)


if __name__ == "__main__":
    main()
