"""usdview container: a menu "hdWarp" that renders what usdview shows, with hdwarp.render. Loading it needs neither Warp nor a GPU."""

from __future__ import annotations

from pxr import Tf
from pxr.Usdviewq.plugin import PluginContainer

AOVS = {"Color": "color", "Distance": "distance_to_image_plane", "Normals": "normal", "Prim ids": "primId"}


def render_current_camera(api: object, aov: str = "color") -> str | None:
    """Render the camera chosen in usdview (or the stage's own choice), at the viewport's size, into a file the user picks.

    Returns the file's name, or None if the user cancelled.
    """
    import hdwarp

    path = _ask_for_file(api)
    if not path:
        return None
    camera = api.cameraPrim  # None: usdview's free camera
    size = api.viewportSize
    frame = hdwarp.render(
        api.stage,
        camera=str(camera.GetPath()) if camera else None,
        time=api.frame,
        resolution=(int(size[0]), int(size[1])),
        aovs=(aov,),
    )
    frame.save(path)
    for diagnostic in frame.diagnostics:
        print(diagnostic)
    return path


def _ask_for_file(api: object) -> str:
    from pxr.Usdviewq.qt import QtWidgets

    answer = QtWidgets.QFileDialog.getSaveFileName(api.qMainWindow, "Render current camera", "render.exr", "Images (*.exr *.png *.npz)")
    return answer[0] if isinstance(answer, tuple) else answer


class HdWarpContainer(PluginContainer):
    def registerPlugins(self, plugRegistry: object, usdviewApi: object) -> None:
        self._commands = [
            plugRegistry.registerCommandPlugin(
                f"HdWarpContainer.render.{aov}", f"{label}…", lambda api, aov=aov: render_current_camera(api, aov)
            )
            for label, aov in AOVS.items()
        ]

    def configureView(self, plugRegistry: object, plugUIBuilder: object) -> None:
        menu = plugUIBuilder.findOrCreateMenu("hdWarp").findOrCreateSubmenu("Render current camera")
        for command in self._commands:
            menu.addItem(command)


Tf.Type.Define(HdWarpContainer)
