"""shade.light_highlights: what stands for a whole light in highlights: a direction, how far the light spreads about it, how strong it is.

An approximation: a round light is the disc that it is seen as; a long one is such a disc anywhere on its spine, the point of which that
is nearest to the mirrored view is its direction (Karis's representative point). `surface.highlight` knows what discs look like in GGX
facets. Right for small lights and for mirrors, within 5 % for spheres, 20 % for disks, 30 to 40 % for rects and cylinders where the
highlight is. Horizons do not cut lights.
"""

from __future__ import annotations

import warp as wp

from hdwarp.shade.area_lights import LightForm
from hdwarp.shade.lane_math import TINY, ahead, angle, cross3, dot3, length3, scaled, unit3
from hdwarp.tables.structs import CYLINDER_LIGHT, DISK_LIGHT, DISTANT_LIGHT, LINE_LIGHT, POINT_LIGHT, RECT_LIGHT, SPHERE_LIGHT


@wp.func
def nearest_on_line(centre: wp.vec3f, x: wp.vec3f, mirrored: wp.vec3f) -> wp.vec3f:
    """The point of the line from centre - x to centre + x nearest to the ray along ``mirrored``."""
    xr, cr, cx = dot3(x, mirrored), dot3(centre, mirrored), dot3(centre, x)
    span = dot3(x, x) - xr * xr
    t = (cr * xr - cx) / wp.max(span, 1.0e-6 * dot3(x, x) + TINY)
    return ahead(centre, x, wp.clamp(t, -1.0, 1.0))


@wp.func
def seen_size(x: wp.vec3f, to_light: wp.vec3f) -> wp.float32:
    """Length of ``x`` across the direction to the light."""
    return length3(cross3(x, to_light)) / wp.max(length3(to_light), TINY)


@wp.func
def spined(
    to_light: wp.vec3f, x: wp.vec3f, y: wp.vec3f, wide: wp.float32, high: wp.float32, strength: wp.float32, mirrored: wp.vec3f
) -> tuple[wp.vec3f, wp.vec2f]:
    """Direction and spread of a light with half axes ``x``, ``y``, seen ``wide`` and ``high``: its spine lies along the larger."""
    flat = wide > high
    long, short = wp.max(wide, high), wp.min(wide, high)
    part = short / wp.max(long, TINY)
    along = wp.vec3f(wp.where(flat, x[0], y[0]), wp.where(flat, x[1], y[1]), wp.where(flat, x[2], y[2]))
    point = nearest_on_line(to_light, scaled(along, 1.0 - part), mirrored)
    radius = wp.sqrt(strength / wp.PI * part)  # of an ellipse so wide and high that pi times both is the strength
    return unit3(point), wp.vec2f(radius * (1.0 - part) / wp.max(part, 1.0e-3), radius)


@wp.func
def flat_strength(centre: wp.vec3f, area: wp.vec3f) -> wp.float32:
    """Irradiance per radiance square on a flat light of this vector area: right from afar and for disks right above, never above pi."""
    square = wp.max(dot3(centre, centre), TINY)
    seen = wp.max(dot3(area, centre), 0.0) / wp.sqrt(square)
    return seen / (square + seen / wp.PI)


@wp.func
def distant_highlight(form: LightForm) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    sharp = form.sine <= 0.0 and form.cosine > 0.0
    strength = wp.where(sharp, 1.0, wp.where(form.cosine < 0.0, wp.PI, wp.PI * form.sine * form.sine))
    return form.z, wp.vec2f(0.0, form.sine), strength


@wp.func
def point_highlight(to_light: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    return unit3(to_light), wp.vec2f(0.0, 0.0), 1.0 / wp.max(dot3(to_light, to_light), TINY)


@wp.func
def sphere_highlight(form: LightForm, to_light: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    """An uneven sphere counts as one of its volume."""
    part = form.radius / wp.max(length3(to_light), TINY)
    return unit3(to_light), wp.vec2f(0.0, wp.min(part, 1.0)), wp.where(part > 1.0, 0.0, wp.PI * part * part)


@wp.func
def flat_highlight(form: LightForm, to_light: wp.vec3f, mirrored: wp.vec3f, area: wp.float32) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    """Of a disk (``area``: pi) or a rect (4), in units of its half axes."""
    strength = flat_strength(to_light, scaled(form.shines, area))
    wide, high = seen_size(form.x, to_light), seen_size(form.y, to_light)
    way, spread = spined(to_light, form.x, form.y, wide, high, strength, mirrored)
    return way, spread, strength


@wp.func
def line_strength(to_light: wp.vec3f, x: wp.vec3f) -> wp.float32:
    """Irradiance square on a line, per radiance times width: exact right above its middle."""
    reach = wp.max(length3(to_light), TINY)
    half = seen_size(x, to_light)
    return half / (reach * reach + half * half) + angle(half, reach) / reach


@wp.func
def cylinder_highlight(form: LightForm, to_light: wp.vec3f, mirrored: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    radius = wp.sqrt(length3(form.y) * length3(form.z))
    strength = wp.min(2.0 * radius * line_strength(to_light, form.x), wp.PI)
    way, spread = spined(to_light, form.x, form.y, seen_size(form.x, to_light), radius, strength, mirrored)
    return way, spread, strength


@wp.func
def line_highlight(form: LightForm, to_light: wp.vec3f, mirrored: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    strength = line_strength(to_light, form.x)
    return unit3(nearest_on_line(to_light, form.x, mirrored)), wp.vec2f(0.5 * strength * length3(to_light), 0.0), strength


@wp.func
def light_highlight(form: LightForm, to_light: wp.vec3f, mirrored: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    """Direction, spread and strength of any of these lights, in ``mirrored``, the view's direction mirrored at the normal (length 1).

    Radiance towards the eye: `surface.highlight` of the direction's cosines and the spread, times the strength, times the light's radiance.
    """
    direction, spread, strength = point_highlight(to_light)
    if form.kind == DISTANT_LIGHT:
        direction, spread, strength = distant_highlight(form)
    elif form.kind == SPHERE_LIGHT:
        direction, spread, strength = sphere_highlight(form, to_light)
    elif form.kind == DISK_LIGHT:
        direction, spread, strength = flat_highlight(form, to_light, mirrored, wp.PI)
    elif form.kind == RECT_LIGHT:
        direction, spread, strength = flat_highlight(form, to_light, mirrored, 4.0)
    elif form.kind == CYLINDER_LIGHT:
        direction, spread, strength = cylinder_highlight(form, to_light, mirrored)
    elif form.kind == LINE_LIGHT:
        direction, spread, strength = line_highlight(form, to_light, mirrored)
    elif form.kind != POINT_LIGHT:
        strength = 0.0
    return direction, spread, strength
