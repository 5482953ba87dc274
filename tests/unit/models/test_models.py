"""Public models: what they promise and do not, how they are described, narrowed, and stored."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import models
from sfumato.errors import ManifestError, PolicyError
from sfumato.models import Limit, Model, model_of, of_type, path_identity
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.projection import Projection
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release import statements
from sfumato.release.manifest import Manifest
from sfumato.release.manifest_format_1 import from_format_1
from sfumato.tables.view import EVERYTHING, View

NOISE = GaussianNoise(
    ("a", "b"), ((4.0,), (1.0, 9.0)), 1.0, (1.0, 1.0), (0.5, 0.25), (None, (0.0, 9.0)), (0.0, 0.0), True
)
CATEGORIES = UniformReplacement(("c", "d"), ({"count": 3}, {"count": 5}), 0.4, False, True)
ROTATED = Rotation(("r1", "r2"), ("x", "y"), (0.0, 0.0), (1.0, 1.0), (None, None), 0.1, False, True, 0.0, (), True)
PROJECTED = Projection(("p1",), ("x", "y"), (0.0, 0.0), (1.0, 1.0), (None, None), 0.1, False, True, 0.0, (), True)
IDS, PUBLIC = Unchanged(("id",), "id"), Unchanged(("region",), "keep")
ALL: list[Model] = [NOISE, CATEGORIES, ROTATED, PROJECTED, IDS, PUBLIC]
LEVEL = sf.Level(0.5)


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.kind)
def test_a_model_comes_back_from_json(model: Model) -> None:
    assert models.decode(json.loads(json.dumps(models.encode(model)))) == model


def test_an_unknown_or_malformed_model_is_refused() -> None:
    with pytest.raises(ManifestError, match="knows no model called 'mystery', only gaussian-copula, gaussian-noise"):
        models.decode({"kind": "mystery"})
    with pytest.raises(ManifestError, match="'gaussian-noise' model of the manifest is malformed"):
        models.decode({**models.encode(NOISE), "covariance": [[4.0], [1.0]]})
    with pytest.raises(ManifestError, match="malformed"):
        models.decode({**models.encode(IDS), "extra": 1})


MARGIN = {
    "step": 1.0,
    "low": [0, 5],
    "high": [2, 5],
    "share": [0.7, 1.0],
    "tail": 0.25,
    "min_count": 32,
    "missing": 0.25,
}
COPULA = GaussianCopula(("x", "y"), (MARGIN, {**MARGIN, "missing": None}), ((1.0,), (0.5, 1.0), (0.25, 0.0, 1.0)), 3.0)


def test_a_copula_describes_its_scores() -> None:
    data = models.encode(COPULA)
    assert models.decode(data) == models.decode(models.encode(COPULA))
    assert COPULA.scores == ("x", "y", "x is missing")
    assert COPULA.coarsened_columns == ("x", "y")
    assert COPULA.narrowed(["y"]).correlation == ((1.0,),)
    assert COPULA.narrowed(["x"]).correlation == ((1.0,), (0.25, 1.0))
    assert COPULA.score_noise().covariance[1] == (1.5, 3.0)
    fine = {**MARGIN, "low": [0], "high": [10_000], "share": [1.0], "missing": None}
    assert GaussianCopula(("x",), (fine,), ((1.0,),), 3.0).coarsened_columns == ()
    for name, value in (
        ("margins", [MARGIN]),
        ("margins", [MARGIN, {"share": [1.0]}]),
        ("margins", [MARGIN, {**MARGIN, "low": [0.5, 5], "missing": None}]),
        ("margins", [MARGIN, {**MARGIN, "share": [1.0, 0.7], "missing": None}]),
        ("margins", [{**MARGIN, "high": [5, 5]}, {**MARGIN, "missing": None}]),
        ("margins", [{**MARGIN, "step": float("nan")}, {**MARGIN, "missing": None}]),
        ("correlation", [[1.0], [0.5, 1.0]]),
        ("correlation", [[1.0], [1.5, 1.0], [0.25, 0.0, 1.0]]),
        ("noise", -1.0),
    ):
        with pytest.raises(ManifestError, match="malformed"):
            models.decode({**data, name: value})


def test_a_model_states_its_properties() -> None:
    assert [model.is_perturbed for model in ALL] == [True, True, False, False, False, False]
    assert all(model.is_collusion_resistant for model in ALL)
    assert [model.original_columns for model in (NOISE, ROTATED)] == [("a", "b"), ("x", "y")]
    assert (IDS.is_identifier, PUBLIC.is_identifier) == (True, False)
    assert (ROTATED.preserves_distances, PROJECTED.preserves_distances) == (True, False)
    assert CATEGORIES.size == 15
    assert NOISE.deviation("b") == 3.0
    assert of_type(ALL, Rotation) == [ROTATED, PROJECTED]
    assert model_of(ALL, "d") is CATEGORIES
    with pytest.raises(KeyError):
        model_of(ALL, "nothing")


def test_descriptions_are_plain() -> None:
    amounts = {"a": NOISE, "c": CATEGORIES, "r1": ROTATED, "id": IDS}
    found = [model.describe(column, lambda value: f"{value:g} kg") for column, model in amounts.items()]
    assert found == [
        "noise of standard deviation 2 kg, in steps of 0.5 kg",
        "retained with probability 0.4, otherwise replaced by one of 3 categories at random, jointly with 1 more",
        "a linear combination of 2 columns (rotation)",
        "unchanged",
    ]


def test_narrowing_gives_the_marginal_model() -> None:
    part = NOISE.narrowed(["b"])
    assert (part.columns, part.covariance, part.step) == (("b",), ((9.0,),), (0.25,))
    assert ROTATED.narrowed(["other"]).columns == ()
    with pytest.raises(PolicyError, match="shown together"):
        ROTATED.narrowed(["r1"])


def test_promises_warnings_and_limits_of_a_copy() -> None:
    sound = [NOISE, CATEGORIES, IDS, PUBLIC]
    promised = statements.promises(LEVEL, sound)
    assert [sentence.split(":")[0] for sentence in promised] == [
        "Numbers, fidelity 0.5",
        "Categories, fidelity 0.5",
        "Collusion-resistant",
    ]
    assert statements.warnings(sound) == ()
    found = statements.limits(sound, View(("a", "region"), "region == 'north'"), in_order=False)
    assert found[0] == "Membership is not protected: a copy shows that a record is in the table."
    assert "A missing value is released as missing: a, b, c, d." in found  # one sentence for both models
    assert (
        "Not clipped: a. An outlier many noise standard deviations from all other records can be singled out." in found
    )
    assert "Only the rows with region == 'north' are released." in found


@pytest.mark.parametrize(("options", "said"), [("", False), (", spread = 3", True)])
def test_a_stated_spread_is_part_of_the_promise(options: str, said: bool) -> None:
    table = pa.table({"x": np.arange(50.0)})
    policy = sf.Policy.loads(f'dataset="d"\n[levels]\nl=0.5\n[columns]\nx={{ role = "gaussian"{options} }}')
    manifest = Manifest.of(policy.fit(table).release(table, "l", sf.Key.from_bytes(bytes(32))))
    assert ("the spread that the owner states" in manifest.promises[0]) is said


def test_a_copy_that_is_not_safe_is_not_promised_to_be() -> None:
    """The planted fault: noise that is independent between copies."""
    naive = GaussianNoise(("a",), ((4.0,),), 1.0, (1.0,), (0.5,), (None,), (0.0,), collusion_resistant=False)
    assert not any("Collusion-resistant" in sentence for sentence in statements.promises(LEVEL, [naive]))
    assert statements.warnings([naive])[0].startswith("UNSAFE")
    assert statements.warnings([ROTATED])[0].startswith("NOTHING IS PERTURBED: copies of all levels are identical")
    assert statements.warnings([IDS]) == ("NOTHING IS PERTURBED in this copy.",)
    assert not any("Collusion-resistant" in sentence for sentence in statements.promises(LEVEL, [ROTATED]))


def test_limits_that_models_share_are_stated_once() -> None:
    other = UniformReplacement(("e",), ({"count": 2},), 0.4, False, True)
    found = statements.limits([CATEGORIES, other], EVERYTHING, in_order=False)
    assert "The list of possible values is public: c, d, e." in found
    assert str(Limit("Text", ("a",), "Advice.")) == "Text: a. Advice."


def test_independent_levels_have_paths_of_their_own() -> None:
    naive = GaussianNoise(("a",), ((4.0,),), 1.0, (1.0,), (0.5,), (None,), (0.0,), collusion_resistant=False)
    assert path_identity("s", "k", NOISE, 0.5) == path_identity("s", "k", NOISE, 0.2)
    assert path_identity("s", "k", naive, 0.5) != path_identity("s", "k", naive, 0.2)


def test_the_first_format_is_translated() -> None:
    old = {
        "asked": 0.5,
        "given": 0.4,
        "models": [{"kind": "unchanged", "columns": ["id"], "why": "id"}],
        "promises": ["Numbers: fine.", "UNSAFE: not fine."],
    }
    new = from_format_1(old)
    assert (new["requested_fidelity"], new["fidelity"]) == (0.5, 0.4)
    assert new["models"][0]["role"] == "id"
    assert (new["promises"], new["warnings"]) == (["Numbers: fine."], ["UNSAFE: not fine."])
