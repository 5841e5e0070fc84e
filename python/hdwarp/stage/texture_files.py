"""stage.texture_files: an asset attribute of a texture node -> its image, or its UDIM tiles."""

from __future__ import annotations

from pxr import Sdf, Usd, UsdShade

from hdwarp.stage.images import ImageError, ImageFile
from hdwarp.stage.looks import Image
from hdwarp.stage.networks import Network

_UDIM = "<UDIM>"
_FIRST_TILE = 1001


def read_files(network: Network, attribute: Usd.Attribute | None, here: str) -> tuple[ImageFile, tuple[Image | None, ...]]:
    """The file, and (); or one of them and all UDIM tiles, as `Texture` has them. ``here`` names the input. Raises ImageError where there
    is none."""
    asset = None if attribute is None else attribute.Get(network.time)
    if not isinstance(asset, Sdf.AssetPath) or not asset.path:
        raise ImageError("names no file. Author one")
    if _UDIM not in asset.path:
        return network.images.read(asset), ()
    files, unread = {}, ""
    for path, tile in _tiles(network, attribute, asset):
        try:
            files[int(tile) - _FIRST_TILE] = network.images.read(Sdf.AssetPath(path, path))
        except ImageError as error:
            unread = str(error)
            network.warning("texture", f"{here}: {error}; the texture's fallback is shown in tile {tile}")
    if not files:
        raise ImageError(unread or f"no tile of @{asset.path}@ was found. Mend the asset path, or put the files there")
    images = {number: file.image for number, file in files.items()}
    return files[min(files)], tuple(images.get(number) for number in range(max(images) + 1))


def _tiles(network: Network, attribute: Usd.Attribute, asset: Sdf.AssetPath) -> list[tuple[str, str]]:
    """(resolved path, number from 1001 to 1100) of the tiles of a path with <UDIM>, which is anchored where it is authored."""
    stack = attribute.GetPropertyStack(network.time)
    layer = next((spec.layer for spec in stack if _has_value(spec)), attribute.GetStage().GetRootLayer())
    pattern = UsdShade.UdimUtils.ResolveUdimPath(asset.path, layer)
    return UsdShade.UdimUtils.ResolveUdimTilePaths(pattern, layer) if pattern else []


def _has_value(spec: Sdf.PropertySpec) -> bool:
    return spec.HasInfo("default") or spec.HasInfo("timeSamples")
