"""What is promised, and what is not, in plain words."""

from __future__ import annotations

from sfumato.models import GaussianNoise, Model, Unchanged, UniformReplacement
from sfumato.schema.levels import Level


def promises(level: Level, *, safe: bool) -> tuple[str, ...]:
    """What a copy at this level guarantees."""
    alone = (
        f"Fidelity {level.fidelity:.6g}: the best linear estimate of a numeric cell keeps an error of "
        f"{level.error:.1%} of the column's variance, and a category is shown unchanged with probability "
        f"{level.retention:.1%}, else drawn at random from its domain (each up to the column's own `scale`)."
    )
    if not safe:
        return (
            alone,
            "UNSAFE: some columns carry noise that is independent between copies. Recipients who pool their copies "
            "learn more than from the best one. For comparison only.",
        )
    return (
        alone,
        "Pooling is useless: whoever holds this copy and any number of less faithful copies of the same dataset, "
        "made with the same key and scheme, learns no more about a record than from this copy alone, whatever method "
        "is used.",
    )


def limits(models: tuple[Model, ...]) -> tuple[str, ...]:
    """What a copy does not guarantee."""
    out = ["It is not hidden that a record is in the table."]
    for model in models:
        if isinstance(model, Unchanged):
            what = "record ids" if model.why == "id" else "public columns"
            out.append(f"Shown as they are ({what}): {', '.join(model.columns)}.")
        elif isinstance(model, GaussianNoise):
            loose = [name for name, clip in zip(model.columns, model.clip, strict=True) if clip is None]
            if loose:
                out.append(
                    f"Not clipped: {', '.join(loose)}. A value that lies further out than the noise reaches stands out."
                )
            out.append("The shape of the noise shows how the numeric columns vary together.")
        elif isinstance(model, UniformReplacement):
            out.append(f"The list of possible values is public: {', '.join(model.columns)}.")
    return tuple(dict.fromkeys(out))
