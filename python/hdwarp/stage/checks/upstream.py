"""stage.checks.upstream: the validators that come with usd-core (UsdValidation), their errors as findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pxr import Sdf, Usd, UsdUtils

from hdwarp.errors import Severity
from hdwarp.stage.checks.findings import ERROR, NOTE, USD, WARNING, Finding, Rule
from hdwarp.stage.checks.subject import Subject

NO_VALIDATORS = Rule("usd-validators-missing", NOTE, "this usd-core has no UsdValidation: only hdWarp's own checks were run")


class Validator(NamedTuple):
    name: str  # "usdGeomValidators:StageMetadataChecker": a finding's code is this, a dot, and the error's name
    meaning: str
    run: Callable[[Usd.Stage, list[Usd.Prim]], Sequence[object]]


class _Told(NamedTuple):
    """How an upstream error is told: its severity, where rendering makes another one of it (None: upstream's), and what to author."""

    cure: str
    severity: Severity | None = None


# By code. Upstream calls most things errors; here errors are what is not drawn.
_TOLD = {
    "usdValidation:AttributeTypeMismatch.AttributeTypeMismatch": _Told("author the attribute with the schema's type", WARNING),
    "usdValidation:StageMetadataChecker.MissingDefaultPrim": _Told("author defaultPrim", NOTE),
    "usdGeomValidators:StageMetadataChecker.MissingMetersPerUnitMetadata": _Told("author metersPerUnit", WARNING),
    "usdGeomValidators:StageMetadataChecker.MissingUpAxisMetadata": _Told("author upAxis", WARNING),
    "usdGeomValidators:EncapsulationChecker.InvalidNestedGprims": _Told("author an Xform above both, and no gprim below a gprim", WARNING),
    # What is missing in the stage as composed is told as composition and asset-unresolved; this is what other variants would miss.
    "usdUtilsValidators:MissingReferenceValidator.UnresolvableDependency": _Told("put the file there, or mend the path", WARNING),
    # The registry of usd-core alone knows no other renderer's shaders, and its nodes read values of like types.
    "usdShadeValidators:ShaderSdrCompliance.MissingShaderIdInRegistry": _Told("author info:id of a node that is to be rendered here", NOTE),
    "usdShadeValidators:ShaderSdrCompliance.MissingSourceType": _Told("author an info:id that is known where it is to be rendered", NOTE),
    "usdShadeValidators:ShaderSdrCompliance.MismatchedPropertyType": _Told("author the input with the node's type", WARNING),
    # Bindings without a target, which block what they would else inherit, are meant as such.
    "usdShadeValidators:MaterialBindingCollectionValidator.InvalidMaterialCollection": _Told(
        "bind one Material, or remove the binding", WARNING
    ),
    "usdShadeValidators:MaterialBindingApiAppliedValidator.MissingMaterialBindingAPI": _Told("apply MaterialBindingAPI", WARNING),
    "usdShadeValidators:SubsetMaterialBindFamilyName.MissingFamilyNameOnGeomSubset": _Told('author familyName = "materialBind"', WARNING),
    "usdSkelValidators:SkelBindingApiAppliedValidator.MissingSkelBindingAPI": _Told("apply SkelBindingAPI"),
    "usdSkelValidators:SkelBindingApiValidator.InvalidSkelBindingAPIApply": _Told("put the prim below a SkelRoot"),
}
_NO_PRIM = Usd.PrimIsLoaded & ~Usd.PrimIsActive  # inactive prims are not loaded
_SEVERITIES = {"Error": ERROR, "Warn": WARNING, "Info": NOTE}


def validators() -> list[Validator] | None:
    """All that are registered, by name; None where this usd-core has none."""
    try:
        from pxr import UsdValidation

        registry = UsdValidation.ValidationRegistry()
        found = sorted(registry.GetAllValidatorMetadata(), key=lambda item: item.name)
    except (ImportError, AttributeError):
        return None

    def runner(name: str) -> Callable[[Usd.Stage, list[Usd.Prim]], Sequence[object]]:
        def errors(stage: Usd.Stage, prims: list[Usd.Prim]) -> list[object]:
            context = UsdValidation.ValidationContext([registry.GetOrLoadValidatorByName(name)])
            # Stage and layers without their prims, then the prims: by itself USD looks at the parts of every instance anew.
            return [*context.Validate(stage, _NO_PRIM), *context.Validate(prims)]

        return errors

    return [Validator(item.name, _first_sentence(item.doc), runner(item.name)) for item in found if not item.isSuite]


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].rstrip(".")


def run(validator: Validator, subject: Subject) -> Iterator[Finding]:
    """What one validator has to say of a stage, its findings alone: what it prints besides is held back."""
    quiet = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        errors = validator.run(subject.stage, subject.prims.all)
    finally:
        quiet.TakeUncoalescedDiagnostics()
        del quiet
    for error in errors:
        if not error.HasNoError():
            yield _finding_of(validator, error)


def _finding_of(validator: Validator, error: object) -> Finding:
    code = f"{validator.name}.{error.GetName()}"
    told = _TOLD.get(code, _Told(""))
    kind = str(error.GetType()).rpartition(".")[2]
    severity = told.severity or _SEVERITIES.get(kind, WARNING)
    message = " ".join(error.GetMessage().split()).rstrip(".")
    paths, layers = _sites(error)
    if code.endswith(".InvalidMaterialCollection") and not any("collection" in path for path in paths):
        severity = NOTE
    if code.endswith((".AttributeTypeMismatch", ".MismatchedPropertyType")) and _differ_in_role(message):
        severity = NOTE
    return Finding(code, severity, paths or _paths_in(message) or ("/",), message, told.cure, USD, layers)


def _differ_in_role(message: str) -> bool:
    """Whether the two types that a message tells apart, as 'float3[]' and 'point3f[]', hold the same values."""
    types = [Sdf.ValueTypeNames.Find(name) for name in re.findall(r"'([\w:]+(?:\[\])?)'", message)]
    return len(types) == 2 and all(types) and types[0].cppTypeName == types[1].cppTypeName


def _paths_in(message: str) -> tuple[str, ...]:
    """The path that a message names, where its sites name none: of specs in a layer that is referenced under another name."""
    return tuple(re.findall(r"<(/[^<>]+)>", message)[:1])


def _sites(error: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(prim and property paths, identifiers of layers)."""
    paths: dict[str, None] = {}
    layers: dict[str, None] = {}
    for site in error.GetSites():
        layer = site.GetLayer()
        if layer:
            layers[layer.identifier] = None
        path = _path_of(site)
        if path:
            paths[path] = None
    return tuple(paths), tuple(layers)


def _path_of(site: object) -> str:
    if site.IsPrim():
        return str(site.GetPrim().GetPath())
    if site.IsProperty():
        return str(site.GetProperty().GetPath())
    spec = (site.GetPrimSpec() or site.GetPropertySpec()) if site.IsValidSpecInLayer() else None
    return str(spec.path) if spec else ""
