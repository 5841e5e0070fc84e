"""stage.checks.products: what render products say and leave unsaid, and how their pictures fit their cameras."""

from __future__ import annotations

from collections.abc import Iterator

from hdwarp.stage.checks.findings import ERROR, NOTE, WARNING, Check, Finding, Rule
from hdwarp.stage.checks.lenses import number
from hdwarp.stage.checks.subject import Picture, Subject
from hdwarp.stage.columns import Camera
from hdwarp.stage.render_spec import RenderPrims
from hdwarp.stage.render_values import RenderValues

ASPECT = Rule(
    "product-aspect", NOTE, "picture and camera aperture have different shapes: the conform policy shows more or less than the aperture"
)
DISTORTED = Rule("product-distorted", WARNING, "aspectRatioConformPolicy adjustPixelAspectRatio stretches the picture")
PIXEL_ASPECT = Rule("product-pixel-aspect", NOTE, "pixelAspectRatio is not 1: viewers that take pixels as square show it stretched")
NO_RESOLUTION = Rule("product-without-resolution", WARNING, "neither the product nor its RenderSettings author a resolution")
UNLISTED = Rule("product-unlisted", NOTE, "no RenderSettings lists the product")
SAME_NAME = Rule("product-same-name", WARNING, "several products write one file")
NO_PRIMVAR = Rule("render-var-primvar", ERROR, "a RenderVar asks for a primvar that nothing drawn has")

_NOTABLE = 0.01  # a hundredth


def _aspects(subject: Subject) -> Iterator[tuple[Picture, Camera, float, float]]:
    """Pictures of products with their camera, the picture's aspect, and how much wider the camera's aperture is than that."""
    for picture in subject.pictures:
        camera = subject.cameras.get(picture.camera)
        if picture.product and camera is not None and min(camera.aperture) > 0.0:
            image = picture.image
            aspect = image.image_width / image.image_height * image.pixel_aspect_ratio
            yield picture, camera, aspect, camera.aperture[0] / camera.aperture[1] / aspect


def shown_change(policy: str, wider: float) -> tuple[str, float]:
    """The side of the aperture that a policy changes, and by what factor; ``wider``: aspect of the aperture over that of the picture."""
    if policy == "adjustApertureHeight" or policy == ("expandAperture" if wider > 1.0 else "cropAperture"):
        return "height", wider
    return "width", 1.0 / wider


def aspects(subject: Subject) -> Iterator[Finding]:
    tenth = 0.1 * subject.unit
    for picture, camera, aspect, wider in _aspects(subject):
        policy = picture.image.aspect_ratio_conform_policy
        if abs(wider - 1.0) < _NOTABLE or policy == "adjustPixelAspectRatio":
            continue
        side, factor = shown_change(policy, wider)
        effect = f"{abs(factor - 1.0) * 100.0:.3g} % {'more' if factor > 1.0 else 'less'} {side} than the aperture's"
        height = number(camera.aperture[0] / aspect / tenth)
        yield ASPECT.broken(
            picture.product,
            f"the aperture of <{camera.path}> is {number(camera.aperture[0] / tenth)} x {number(camera.aperture[1] / tenth)}, the picture"
            f" {number(aspect)} : 1; {policy} shows {effect}",
            f"author verticalAperture = {height} on the camera, or a resolution of {_fitting(picture, camera)}",
        )


def distortions(subject: Subject) -> Iterator[Finding]:
    for picture, camera, _, wider in _aspects(subject):
        pixel = picture.image.pixel_aspect_ratio * wider
        if picture.image.aspect_ratio_conform_policy == "adjustPixelAspectRatio" and abs(pixel - 1.0) >= _NOTABLE:
            yield DISTORTED.broken(
                picture.product,
                f"adjustPixelAspectRatio makes pixels {number(pixel)} times as wide as high: on square pixels things look"
                f" {_stretch(pixel)}",
                f"author a resolution of {_fitting(picture, camera)}, or another aspectRatioConformPolicy",
            )


def pixel_aspects(subject: Subject) -> Iterator[Finding]:
    for picture in subject.pictures:
        ratio = picture.image.pixel_aspect_ratio
        if picture.product and picture.image.aspect_ratio_conform_policy != "adjustPixelAspectRatio" and abs(ratio - 1.0) >= _NOTABLE:
            yield PIXEL_ASPECT.broken(
                picture.product,
                f"pixelAspectRatio is {number(ratio)}: on square pixels things look {_stretch(ratio)}",
                "author pixelAspectRatio = 1, unless the picture is meant for an anamorphic display",
            )


def _stretch(pixel: float) -> str:
    """Of pixels shown square that are ``pixel`` times as wide as high."""
    return f"{abs(1.0 - 1.0 / pixel) * 100.0:.3g} % too {'narrow' if pixel > 1.0 else 'wide'}"


def _fitting(picture: Picture, camera: Camera) -> str:
    """The resolution of that width whose square pixels show the aperture as it is."""
    width = picture.image.image_width
    ratio = 1.0 if picture.image.aspect_ratio_conform_policy == "adjustPixelAspectRatio" else picture.image.pixel_aspect_ratio
    return f"({width}, {max(1, round(width * ratio * camera.aperture[1] / camera.aperture[0]))})"


def _holders(found: RenderPrims, product: str) -> list[RenderValues]:
    return [values for values in map(RenderValues, found.settings) if product in values.targets("products")]


def resolutions(subject: Subject) -> Iterator[Finding]:
    found = subject.render_prims
    for prim in found.products:
        path = str(prim.GetPath())
        if not any(values.is_authored("resolution") for values in [RenderValues(prim), *_holders(found, path)]):
            yield NO_RESOLUTION.broken(
                path,
                "no resolution is authored; the schema's fallback 2048 x 1080 is rendered",
                "author uniform int2 resolution = (1920, 1080)",
            )


def listed(subject: Subject) -> Iterator[Finding]:
    found = subject.render_prims
    for prim in found.products:
        path = str(prim.GetPath())
        if not _holders(found, path):
            settings = str(found.settings[0].GetPath()) if found.settings else ""
            yield UNLISTED.broken(
                path,
                "no RenderSettings lists it: renderers that start from the settings pass over it",
                f"add it to the products relationship of <{settings}>"
                if settings
                else "author a RenderSettings prim whose products target it",
            )


def same_names(subject: Subject) -> Iterator[Finding]:
    """Among products that are rendered together: of one RenderSettings, or of none."""
    found = subject.render_prims
    groups = [values.targets("products") for values in map(RenderValues, found.settings)]
    groups.append([str(prim.GetPath()) for prim in found.products if not _holders(found, str(prim.GetPath()))])
    prims = {str(prim.GetPath()): prim for prim in found.products}
    for group in groups:
        named: dict[str, list[str]] = {}
        for path in dict.fromkeys(group):
            name = RenderValues(prims[path]).text("productName", time=subject.time) if path in prims else ""
            if name and "{product}" not in name:
                named.setdefault(name, []).append(path)
        for name, paths in named.items():
            if len(paths) > 1:
                effect = "hdwarp adds the products' names to tell them apart, other renderers write one over the other"
                message = f"productName is '{name}' on {'both' if len(paths) == 2 else f'all {len(paths)}'}: {effect}"
                yield SAME_NAME.broken(paths, message, "author a productName of its own for each")


def primvars(subject: Subject) -> Iterator[Finding]:
    asked = {
        (path, aov.removeprefix("primvars:"))
        for picture in subject.pictures
        for path, _, aov in picture.vars
        if aov.startswith("primvars:")
    }
    if not asked:
        return
    known: set[str] = set()
    for gprim in subject.columns.gprims:
        known.update(gprim.constants, gprim.instance_primvars, gprim.mesh.primvars if gprim.mesh is not None else ())
    there = ", ".join(sorted(known)) or "none"
    for path, name in sorted(asked):
        if name not in known:
            yield NO_PRIMVAR.broken(
                path,
                f"nothing that is drawn has a primvar '{name}' (there are: {there})",
                f"author primvars:{name} on a gprim, or mend sourceName",
            )


CHECKS = (
    Check(aspects, (ASPECT,)),
    Check(distortions, (DISTORTED,)),
    Check(pixel_aspects, (PIXEL_ASPECT,)),
    Check(resolutions, (NO_RESOLUTION,)),
    Check(listed, (UNLISTED,)),
    Check(same_names, (SAME_NAME,)),
    Check(primvars, (NO_PRIMVAR,)),
)
