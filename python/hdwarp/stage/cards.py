"""stage.cards: models drawn as cards: quads with the model's pictures -> RawMesh and the materials of its sides."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from pxr import Sdf, Usd, UsdGeom

from hdwarp.errors import Diagnostics
from hdwarp.stage.columns import Primvar
from hdwarp.stage.images import ImageError, ImageFile, Images
from hdwarp.stage.looks import Material, Texture
from hdwarp.stage.meshes import RawMesh
from hdwarp.stage.transforms import LARGEST

GEOMETRIES = ("cross", "box", "fromTexture")
ST = "cardsUv"  # primvar that says where on its picture a point of a card is, by Hydra's name
_CUT = 0.1  # cards are cut out where their picture's alpha is less, as in Hydra
_GAP = 1e-6  # between the two cards of a cross that stand back to back, by the largest coordinate
_AXES = "XYZ"
_SIDES = tuple(f"{axis}{sign}" for axis in _AXES for sign in ("Pos", "Neg"))
# Picture of a side: (axis of u, whether u falls along it, axis of v, whether v falls along it), as Hydra lays it: seen from outside, up is
# +z, and +y on top and -y below the model.
_LAID = {
    "XPos": (1, False, 2, False),
    "XNeg": (1, True, 2, False),
    "YPos": (0, True, 2, False),
    "YNeg": (0, False, 2, False),
    "ZPos": (0, False, 1, False),
    "ZNeg": (0, False, 1, True),
}
_SCREEN = np.array(((1.0, -1.0, 0.0, 1.0), (-1.0, -1.0, 0.0, 1.0), (-1.0, 1.0, 0.0, 1.0), (1.0, 1.0, 0.0, 1.0)))
_SCREEN_ST = np.array(((1.0, 1.0), (0.0, 1.0), (0.0, 0.0), (1.0, 0.0)), np.float32)


@dataclass(slots=True, eq=False)
class _Picture:
    """The texture that is authored for a side."""

    name: str  # of the attribute
    asset: Sdf.AssetPath
    file: ImageFile | None  # None: it cannot be read


def read_cards(
    prim: Usd.Prim, box: np.ndarray | None, images: Images, path: str, diagnostics: Diagnostics
) -> tuple[RawMesh, list[Material]] | None:
    """(mesh, materials of its face subsets) of a model's cards; None, with a diagnostic, where there is none to draw. ``box``: (2, 3), of
    the model; None: it has none, which cards that lie where their pictures say do not need. A face is a card."""
    geometry = card_geometry(prim)
    if geometry not in GEOMETRIES:
        message = f"model:cardGeometry is {geometry!r}; read as cross. Author cross, box or fromTexture"
        diagnostics.warning(path, "draw-mode", message)
        geometry = "cross"
    pictures = {}
    for side in _SIDES:
        attribute = prim.GetAttribute(f"model:cardTexture{side}")
        asset = attribute.Get(Usd.TimeCode.EarliestTime()) if attribute else None
        if isinstance(asset, Sdf.AssetPath) and asset.path:
            pictures[side] = _read(attribute.GetName(), asset, images, geometry, path, diagnostics)
    if geometry == "fromTexture":
        quads = _placed_quads(pictures, path, diagnostics)
    else:
        quads = _box_quads(prim, box, geometry, pictures)
    if not quads:
        diagnostics.warning(path, "draw-mode", "no card of the model has an area or is visible; nothing is drawn for it")
        return None
    return _mesh(quads, pictures, path)


def card_geometry(prim: Usd.Prim) -> str:
    return _token(prim, "model:cardGeometry") or "cross"


def _read(name: str, asset: Sdf.AssetPath, images: Images, geometry: str, path: str, diagnostics: Diagnostics) -> _Picture:
    try:
        return _Picture(name, asset, images.read(asset))
    except ImageError as error:
        instead = "the card is not drawn" if geometry == "fromTexture" else "the card is drawn in model:drawModeColor"
        diagnostics.warning(path, "texture", f"{name}: {error}; {instead}")
        return _Picture(name, asset, None)


def _box_quads(
    prim: Usd.Prim, box: np.ndarray, geometry: str, pictures: dict[str, _Picture]
) -> list[tuple[np.ndarray, np.ndarray, str | None]]:
    """(corners (4, 3), st (4, 2), side whose picture is shown) of the cards on the sides of the box, or through its middle. Where one side
    of an axis has a picture, the other shows the same, as seen through the model."""
    drawn = [side for side in _SIDES if not pictures or f"{side[0]}Pos" in pictures or f"{side[0]}Neg" in pictures]
    if _card_visibility(prim) == "simple":
        up = str(UsdGeom.GetStageUpAxis(prim.GetStage()))
        drawn = [side for side in drawn if side[0] != up]
    size, quads = box[1] - box[0], []
    for side in drawn:
        axis, up = _AXES.index(side[0]), side.endswith("Pos")
        a, b = (axis + 1) % 3, (axis + 2) % 3  # counter-clockwise seen from +axis
        if not (size[a] > 0.0 and size[b] > 0.0):
            continue
        if geometry == "box":
            at = box[int(up), axis]
        else:
            at = 0.5 * (box[0, axis] + box[1, axis]) + (1 if up else -1) * _GAP * float(np.abs(box).max())
        corners, along = np.empty((4, 3)), np.zeros((4, 3))
        corners[:, axis] = at
        corners[:, a], corners[:, b] = box[(0, 1, 1, 0), a], box[(0, 0, 1, 1), b]
        along[:, a], along[:, b] = (0, 1, 1, 0), (0, 0, 1, 1)
        if not up:
            corners, along = corners[::-1], along[::-1]
        shown = side if side in pictures else f"{side[0]}{'Neg' if up else 'Pos'}"
        shown = shown if shown in pictures else None
        u, u_falls, v, v_falls = _LAID[shown or side]
        st = np.stack([1 - along[:, u] if u_falls else along[:, u], 1 - along[:, v] if v_falls else along[:, v]], axis=1)
        quads.append((corners, st, shown))
    return quads


def _placed_quads(pictures: dict[str, _Picture], path: str, diagnostics: Diagnostics) -> list[tuple[np.ndarray, np.ndarray, str | None]]:
    """The same of cards that lie where the metadata worldtoscreen of their pictures says: at screen depth 0, from (-1, -1) to (1, 1)."""
    if not pictures:
        message = "model:cardGeometry is fromTexture, and no model:cardTexture* is authored. Author one, or another cardGeometry"
        diagnostics.warning(path, "draw-mode", message)
    quads = []
    for side, picture in pictures.items():
        if picture.file is None:
            continue
        matrix, said = picture.file.screen_from_world, ""
        if matrix is None:
            said = "has no metadata worldtoscreen of 16 numbers (OpenEXR and TIFF files can hold it)"
        elif not np.isfinite(matrix).all() or not np.linalg.det(matrix):
            said = "has a singular matrix as its metadata worldtoscreen"
        else:
            at = _SCREEN @ np.linalg.inv(matrix).T
            with np.errstate(divide="ignore", invalid="ignore"):
                corners = at[:, :3] / at[:, 3:]
            if (np.abs(corners) <= LARGEST).all():
                quads.append((corners, _SCREEN_ST, side))
            else:
                said = "has a metadata worldtoscreen that puts the card out of range"
        if said:
            message = f"{picture.name}: @{picture.asset.path}@ {said}, so that nothing says where its card is; it is not drawn"
            diagnostics.warning(path, "texture", f"{message}. Write the metadata, or author another cardGeometry")
    return quads


def _mesh(
    quads: list[tuple[np.ndarray, np.ndarray, str | None]], pictures: dict[str, _Picture], path: str
) -> tuple[RawMesh, list[Material]]:
    """Subsets and materials go by picture; a card without one, or whose picture cannot be read, has none and shows the draw mode's
    colour."""
    shown = [side if side is not None and pictures[side].file is not None else None for _, _, side in quads]
    sides = [side for side in _SIDES if side in shown]
    points = np.concatenate([corners for corners, _, _ in quads]).astype(np.float32)
    st = np.concatenate([st for _, st, _ in quads]).astype(np.float32)
    count = len(quads)
    raw = RawMesh(
        points,
        np.full(count, 4, np.int32),
        np.arange(4 * count, dtype=np.int32),
        None,
        False,
        "none",
        None,
        {ST: Primvar("vertex", st)} if sides else {},
        np.array([-1 if side is None else sides.index(side) for side in shown], np.int16) if sides else None,
        [],
    )
    return raw, [_material(pictures[side], path) for side in sides]


def _material(picture: _Picture, path: str) -> Material:
    """It goes by the path of the attribute that names its picture."""
    texture = Texture(picture.file.image, ST)
    shown = {"diffuseColor": texture}
    if not picture.file.image.is_opaque:
        shown["opacity"] = replace(texture, channel=3)
    return Material(f"{path}.{picture.name}", opacity_threshold=_CUT, textures=shown)


def _token(prim: Usd.Prim, name: str) -> str | None:
    value = prim.GetAttribute(name).Get() if prim.HasAttribute(name) else None
    return value if isinstance(value, str) else None


def _card_visibility(prim: Usd.Prim) -> str:
    """The nearest opinion, the prim's own or from above; full where there is none."""
    while prim and not prim.IsPseudoRoot():
        value = _token(prim, "model:cardVisibility")
        if value in ("full", "simple"):
            return value
        prim = prim.GetParent()
    return "full"
