"""stage.layer_files: layers whose files are gone. Usd goes on with what it has read of them: a reload that finds no file sends no notice,
changes nothing that can be asked, and is no composition error. So this looks at the disk."""

from __future__ import annotations

import os

from pxr import Ar, Sdf, Usd

from hdwarp.errors import Diagnostics


class LayerFiles:
    """The files of the layers that a stage's sublayers, references and payloads bring. It keeps names and no layers, which would
    outlive their stage's use of them."""

    def __init__(self, stage: Usd.Stage) -> None:
        self._stage = stage
        self._identifiers: dict[str, str] = {}  # by file; of a package, the package itself where it is used, else a layer in it

    def refresh(self) -> None:
        """Look up which there are, after layers may have come or gone."""
        found: dict[str, str] = {}
        for layer in self._stage.GetUsedLayers(includeClipLayers=False):
            path, identifier = _file_of(layer), layer.identifier
            found[path] = min(identifier, found.get(path, identifier))
        for layer in (self._stage.GetRootLayer(), self._stage.GetSessionLayer()):  # nobody asks for these
            found.pop(_file_of(layer) if layer else "", None)
        found.pop("", None)
        self._identifiers = found

    def lost(self) -> list[str]:
        """Files that are gone or may not be read, sorted. Not those of layers with unsaved edits: they may be still to come."""
        gone = sorted(path for path in self._identifiers if not os.access(path, os.R_OK))
        return [path for path in gone if (layer := Sdf.Layer.Find(self._identifiers[path])) and not layer.dirty]

    def report(self, lost: list[str], diagnostics: Diagnostics) -> None:
        """Each lost file as an error of the layer that asks for it."""
        for path in lost:
            identifier = self._identifiers[path]
            askers = self._askers(path, identifier) or [self._stage.GetRootLayer().identifier]
            others = len(askers) - 1
            more = f" (and of {others} other layer{'s' if others > 1 else ''})" if others else ""
            diagnostics.error(
                askers[0],
                "composition",
                f"The file of @{identifier}@, a sublayer, reference or payload of @{askers[0]}@{more}, is gone or may not be read."
                " What was read of it before is drawn; put the file back and reload it, or remove the arc",
            )

    def _askers(self, path: str, identifier: str) -> list[str]:
        """Identifiers of the layers that name a file, sorted; found by walking all of their prims, but for sublayers."""
        layers = [layer for layer in self._stage.GetUsedLayers(includeClipLayers=False) if _file_of(layer) != path]
        for names in (lambda layer: layer.subLayerPaths, Sdf.Layer.GetCompositionAssetDependencies):
            found = [layer.identifier for layer in layers if any(_names(layer, asset, path, identifier) for asset in names(layer))]
            if found:
                return sorted(found)
        return []


def _file_of(layer: Sdf.Layer) -> str:
    """The file on this machine that a layer, or the package around it, was read from; "" of one that has none."""
    path = layer.realPath
    if path.endswith("]") and Ar.IsPackageRelativePath(path):
        path = Ar.SplitPackageRelativePathOuter(path)[0]
    return path if os.path.isabs(path) else ""


def _names(layer: Sdf.Layer, asset: str, path: str, identifier: str) -> bool:
    """Whether an asset path in ``layer`` means a file that is not there. Resolvers find none: a path without ./ is anchored here."""
    asset = Ar.SplitPackageRelativePathOuter(asset)[0] if Ar.IsPackageRelativePath(asset) else asset
    if not asset:
        return False
    return layer.ComputeAbsolutePath(asset) in (identifier, path) or os.path.normpath(os.path.join(_folder_of(layer), asset)) == path


def _folder_of(layer: Sdf.Layer) -> str:
    return os.path.dirname(_file_of(layer))
