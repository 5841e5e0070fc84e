"""shade.light_highlights: the one direction that stands for a whole light in highlights: Karis's representative points, an approximation.

The point of a light nearest to the mirrored view; `surface.highlight` makes its lobe wider by ``spread`` and as much fainter. Exact for a
mirror that shows the light, and for a light so small that it is a point; between, wide lobes come out up to some ten per cent off, and
what the horizon cuts off a light is not missed.
"""

from __future__ import annotations

import warp as wp

from hdwarp.shade.area_lights import LightForm
from hdwarp.shade.lane_math import TINY, ahead, ahead2, dot3, length3, scaled, unit3
from hdwarp.tables.structs import CYLINDER_LIGHT, DISK_LIGHT, DISTANT_LIGHT, LINE_LIGHT, POINT_LIGHT, RECT_LIGHT, SPHERE_LIGHT


@wp.func
def nearest_on_sphere(centre: wp.vec3f, radius: wp.float32, mirrored: wp.vec3f) -> wp.vec3f:
    """Where the ray from here along ``mirrored`` (length 1) passes nearest to the sphere's centre, no further off that than ``radius``."""
    ahead_of = wp.max(dot3(centre, mirrored), 0.0)
    off = ahead(scaled(mirrored, ahead_of), centre, -1.0)
    return ahead(centre, off, wp.min(radius / wp.max(length3(off), TINY), 1.0))


@wp.func
def nearest_on_line(centre: wp.vec3f, x: wp.vec3f, mirrored: wp.vec3f) -> wp.vec3f:
    """The point of the line from centre - x to centre + x nearest to the ray along ``mirrored``."""
    xr, cr, cx = dot3(x, mirrored), dot3(centre, mirrored), dot3(centre, x)
    span = dot3(x, x) - xr * xr
    t = (cr * xr - cx) / wp.max(span, 1.0e-6 * dot3(x, x) + TINY)
    return ahead(centre, x, wp.clamp(t, -1.0, 1.0))


@wp.func
def on_plane(centre: wp.vec3f, shines: wp.vec3f, mirrored: wp.vec3f) -> wp.vec3f:
    """From a flat light's centre to where the ray meets its plane; far off on its side if it does not."""
    slope, high = dot3(shines, mirrored), dot3(shines, centre)
    reach = length3(centre)
    t = wp.where(slope * 1.0e4 * reach > high, high / wp.max(slope, TINY), 1.0e4 * reach)
    return ahead(scaled(mirrored, t), centre, -1.0)


@wp.func
def nearest_on_disk(centre: wp.vec3f, x: wp.vec3f, y: wp.vec3f, shines: wp.vec3f, mirrored: wp.vec3f) -> wp.vec3f:
    """The point of the disk with half axes ``x``, ``y`` nearest, in the disk's own measure, to where the ray meets its plane."""
    p = on_plane(centre, shines, mirrored)
    s, t = dot3(p, x) / wp.max(dot3(x, x), TINY), dot3(p, y) / wp.max(dot3(y, y), TINY)
    inwards = 1.0 / wp.max(wp.sqrt(s * s + t * t), 1.0)
    return ahead2(centre, x, s * inwards, y, t * inwards)


@wp.func
def nearest_on_rect(centre: wp.vec3f, x: wp.vec3f, y: wp.vec3f, shines: wp.vec3f, mirrored: wp.vec3f) -> wp.vec3f:
    """The same of the rect with half edges ``x``, ``y``."""
    p = on_plane(centre, shines, mirrored)
    s, t = dot3(p, x) / wp.max(dot3(x, x), TINY), dot3(p, y) / wp.max(dot3(y, y), TINY)
    return ahead2(centre, x, wp.clamp(s, -1.0, 1.0), y, wp.clamp(t, -1.0, 1.0))


@wp.func
def shape_of(strength: wp.float32, wide: wp.float32, high: wp.float32) -> wp.vec2f:
    """Half width and half height, as spreads, of a light as wide and high in proportion; pi times their product is ``strength``."""
    area = wp.sqrt(strength / wp.PI)
    ratio = wp.sqrt(wp.max(wide, TINY) / wp.max(high, TINY))
    return wp.vec2f(area * ratio, area / ratio)


@wp.func
def flat_strength(centre: wp.vec3f, area: wp.vec3f) -> wp.float32:
    """Irradiance per radiance square on a flat light of this vector area: right from afar and for disks right above, never above pi."""
    square = wp.max(dot3(centre, centre), TINY)
    seen = wp.max(dot3(area, centre), 0.0) / wp.sqrt(square)
    return seen / (square + seen / wp.PI)


@wp.func
def distant_highlight(form: LightForm, mirrored: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    way = unit3(nearest_on_sphere(form.z, form.sine, mirrored))
    sharp = form.sine <= 0.0 and form.cosine > 0.0
    strength = wp.where(sharp, 1.0, wp.where(form.cosine < 0.0, wp.PI, wp.PI * form.sine * form.sine))
    return way, wp.vec2f(form.sine, form.sine), strength


@wp.func
def point_highlight(to_light: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    return unit3(to_light), wp.vec2f(0.0, 0.0), 1.0 / wp.max(dot3(to_light, to_light), TINY)


@wp.func
def sphere_highlight(form: LightForm, to_light: wp.vec3f, mirrored: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    """An uneven sphere counts as one of its volume."""
    part = form.radius / wp.max(length3(to_light), TINY)
    strength = wp.where(part > 1.0, 0.0, wp.PI * part * part)
    return unit3(nearest_on_sphere(to_light, form.radius, mirrored)), wp.vec2f(part, part), strength


@wp.func
def disk_highlight(form: LightForm, to_light: wp.vec3f, mirrored: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    strength = flat_strength(to_light, scaled(form.shines, wp.PI))
    way = unit3(nearest_on_disk(to_light, form.x, form.y, form.shines, mirrored))
    return way, shape_of(strength, length3(form.x), length3(form.y)), strength


@wp.func
def rect_highlight(form: LightForm, to_light: wp.vec3f, mirrored: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    strength = flat_strength(to_light, scaled(form.shines, 4.0))
    way = unit3(nearest_on_rect(to_light, form.x, form.y, form.shines, mirrored))
    return way, shape_of(strength, length3(form.x), length3(form.y)), strength


@wp.func
def line_strength(to_light: wp.vec3f, x: wp.vec3f) -> wp.float32:
    """Irradiance square on a line, per radiance times width: right from afar and for endless lines."""
    square = wp.max(dot3(to_light, to_light), TINY)
    reach = wp.sqrt(square)
    along = dot3(to_light, x) / reach
    seen = 2.0 * wp.sqrt(wp.max(dot3(x, x) - along * along, 0.0))
    return seen / (square + 2.0 / wp.PI * seen * reach)


@wp.func
def cylinder_highlight(form: LightForm, to_light: wp.vec3f, mirrored: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    radius = wp.sqrt(length3(form.y) * length3(form.z))
    point = nearest_on_line(to_light, form.x, mirrored)
    strength = wp.min(2.0 * radius * line_strength(to_light, form.x), wp.PI)
    return unit3(nearest_on_sphere(point, radius, mirrored)), shape_of(strength, length3(form.x), radius), strength


@wp.func
def line_highlight(form: LightForm, to_light: wp.vec3f, mirrored: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    strength = line_strength(to_light, form.x)
    # 4 / pi: as of a narrow rect, whose half width by half height by pi is its strength.
    return unit3(nearest_on_line(to_light, form.x, mirrored)), wp.vec2f(2.0 / wp.PI * strength * length3(to_light), 0.0), strength


@wp.func
def light_highlight(form: LightForm, to_light: wp.vec3f, mirrored: wp.vec3f) -> tuple[wp.vec3f, wp.vec2f, wp.float32]:
    """Direction, spread and strength of any of these lights, in ``mirrored``, the view's direction mirrored at the normal (length 1).

    Radiance towards the eye: `surface.highlight` of the direction's cosines and the spread, times the strength, times the light's radiance.
    """
    direction, spread, strength = point_highlight(to_light)
    if form.kind == DISTANT_LIGHT:
        direction, spread, strength = distant_highlight(form, mirrored)
    elif form.kind == SPHERE_LIGHT:
        direction, spread, strength = sphere_highlight(form, to_light, mirrored)
    elif form.kind == DISK_LIGHT:
        direction, spread, strength = disk_highlight(form, to_light, mirrored)
    elif form.kind == RECT_LIGHT:
        direction, spread, strength = rect_highlight(form, to_light, mirrored)
    elif form.kind == CYLINDER_LIGHT:
        direction, spread, strength = cylinder_highlight(form, to_light, mirrored)
    elif form.kind == LINE_LIGHT:
        direction, spread, strength = line_highlight(form, to_light, mirrored)
    elif form.kind != POINT_LIGHT:
        strength = 0.0
    return direction, spread, strength
