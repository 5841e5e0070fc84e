"""A process that opens hostile stages one after another and says what was wrong with what hdWarp made of each: `python -m
tests.hostile.worker FOLDER`. Jobs and answers are lines of JSON. It may die or hang: `pool` watches it."""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
from pathlib import Path

import numpy as np
from pxr import Sdf, Tf, Usd
from tests.hostile.healthy import HEADER, HEALTHY, is_healthy
from tests.live.test_live_stage import assert_same, picture

from hdwarp.batch.shots import plan_shots
from hdwarp.cli.inspect import inspect_stage
from hdwarp.errors import Diagnostics, Error
from hdwarp.frame import Frame
from hdwarp.rendering import render_shot
from hdwarp.scene import Scene

MEMORY = 4 << 30  # bytes of address space beyond what an idle worker has
MOST_PIXELS = 100_000  # of hostile products that are rendered too
PLANES = ("color", "albedo", "distance_to_image_plane", "normal", "Ngeom", "elementId", "instanceId", "primvars:displayColor")
FINITE = ("distance_to_image_plane", "position", "Ngeom", "barycentric", "color", "albedo")


class Wrong(Exception):
    """What hdWarp did that it must not do, whatever the stage."""


class Worker:
    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        with Scene(self.stage(HEADER + HEALTHY)) as scene:
            self.healthy = picture(scene)
            self.origin = scene.worlds.origin.copy()
        assert np.isin(["/World/quad", "/World/cube", "/World/sphere", "/World/many/cone"], seen(self.healthy)).all()

    def stage(self, text: str) -> Usd.Stage:
        layer = Sdf.Layer.CreateAnonymous("root.usda")
        layer.ImportFromString(text)
        return Usd.Stage.Open(layer)

    def root(self, path: str, arc: str) -> str:
        """File of the healthy stage with the hostile file beside it, as a sublayer or referenced."""
        self.count += 1
        file = self.folder / f"root{os.getpid()}_{self.count}.usda"
        if arc == "sublayer":
            text = HEADER.replace("(\n", f"(\n    subLayers = [@{path}@]\n", 1) + HEALTHY
        else:
            place = "double3 xformOp:translate = (0, 0, -30)\nuniform token[] xformOpOrder = ['xformOp:translate']"
            text = f"{HEADER}{HEALTHY}\ndef Xform 'Hostile'\n{{\n{place}\ndef 'it' (\nreferences = @{path}@\n) {{}}\n}}\n"
        file.write_text(text)
        return str(file)

    def check(self, path: str, arc: str, sync: bool, times: list[float]) -> dict:
        """The hostile file as a part of the healthy stage."""
        file = self.root(path, arc)
        try:
            with Scene(file) as scene:
                frame = picture(scene)
                self.compare(frame, scene)
                self.products(scene)
                for time in times:
                    scene.sync(time)
                    with Scene(scene.stage, time=time) as fresh:
                        assert_same(scene, fresh, [f"sync({time})"])
                    self.compare(picture(scene), scene)
                told = [item.code for item in scene.diagnostics]
            inspect_stage(file)
            if sync:
                self.sync(path)
        finally:
            os.unlink(file)
        return {"drawn": int(np.isin(seen(frame), [path for path in frame.prim_paths if not is_healthy(path)]).sum()), "told": told}

    def sync(self, path: str) -> None:
        """The hostile part comes into an open scene, and goes again."""
        try:
            hostile = Sdf.Layer.FindOrOpen(path)
        except Tf.ErrorException:  # no usda: nothing to author
            return
        edited = Sdf.Layer.CreateAnonymous("hostile.usda")
        stage = self.stage(HEADER.replace("(\n", f"(\n    subLayers = [@{edited.identifier}@]\n", 1) + HEALTHY)
        with Scene(stage) as scene:
            edited.TransferContent(hostile)
            scene.sync()
            with Scene(stage) as fresh:
                assert_same(scene, fresh, ["hostile part authored"])
            edited.Clear()
            scene.sync()
            after = picture(scene)
            if not all(np.array_equal(after[name], self.healthy[name], equal_nan=True) for name in self.healthy.aovs):
                raise Wrong("once the hostile part is gone the picture is not the healthy one")

    def compare(self, frame: Frame, scene: Scene) -> None:
        """What is healthy has the pixels that it has alone, unless something hostile is in front of it."""
        ours, alone = seen(frame), seen(self.healthy)
        near, before = frame["distance_to_image_plane"], self.healthy["distance_to_image_plane"]
        hit, theirs = ours != "", np.array([path != "" and not is_healthy(path) for path in ours.flat]).reshape(ours.shape)
        for name in FINITE:
            plane = frame[name]
            if not np.isfinite(plane[hit]).all():
                raise Wrong(f"{name} is not finite where {sorted(set(ours[hit & ~finite(plane)]))} is hit")
        mine = ~theirs
        if (lost := (ours != alone) & mine).any():
            raise Wrong(f"{int(lost.sum())} pixels show {sorted(set(ours[lost]))} in place of {sorted(set(alone[lost]))}")
        if (behind := theirs & (near > before)).any():
            raise Wrong(f"{sorted(set(ours[behind]))} hides {sorted(set(alone[behind]))} from behind in {int(behind.sum())} pixels")
        mine &= hit
        if np.array_equal(scene.worlds.origin, self.origin):
            for name in PLANES:
                if name == "color" and len(scene.lights):  # hostile lights shine on all
                    continue
                if name in frame.aovs and name in self.healthy.aovs and not np.array_equal(frame[name][mine], self.healthy[name][mine]):
                    raise Wrong(f"{name} of what is healthy is not what it is alone")
        elif not np.allclose(near[mine], before[mine], rtol=1e-5):
            worst = np.abs(near[mine] - before[mine]).max()
            raise Wrong(f"depths of what is healthy are up to {worst} off, with the origin at {scene.worlds.origin}")

    def products(self, scene: Scene) -> None:
        """Whatever RenderProducts the stage has: rendered, or refused by name."""
        log = Diagnostics()
        for shot in plan_shots(scene.stage, diagnostics=log):
            if shot.image.width * shot.image.height <= MOST_PIXELS:
                try:
                    render_shot(scene, shot)
                except Error:
                    continue

    def check_file(self, path: str) -> dict:
        """The file as a stage of its own: rendered, or refused by name."""
        try:
            with Scene(path) as scene:
                self.products(scene)
                for shot in plan_shots(scene.stage, diagnostics=Diagnostics())[:4]:
                    if shot.image.width * shot.image.height <= 2_000_000:
                        try:
                            render_shot(scene, shot)
                        except Error:
                            continue
            inspect_stage(path)
        except Error as error:
            return {"refused": str(error)}
        return {}

    def do(self, job: dict) -> dict:
        if job["how"] == "file":
            found = self.check_file(job["path"])
            self.check(job["path"], "reference", False, [])
            return found
        return self.check(job["path"], "sublayer", job["sync"], job["times"])


def finite(plane: np.ndarray) -> np.ndarray:
    ok = np.isfinite(plane)
    return ok.all(axis=-1) if ok.ndim == 3 else ok


def seen(frame: Frame) -> np.ndarray:
    """(H, W) paths, "" where nothing is hit."""
    ids = frame["primId"]
    if ids.max(initial=-1) >= len(frame.prim_paths):
        raise Wrong(f"primId {ids.max()} of {len(frame.prim_paths)} paths")
    return np.array([*frame.prim_paths, ""], dtype=object)[ids]


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)  # what libraries print is no answer
    worker = Worker(Path(sys.argv[1]))
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = {"ok": True, **worker.do(json.loads(line))}
        except BaseException as error:
            answer = {"ok": False, "type": type(error).__name__, "failure": traceback.format_exc(limit=-12)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
