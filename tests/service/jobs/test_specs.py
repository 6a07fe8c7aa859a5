"""What a job's request may not say, though each of its fields is well formed."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from service.jobs.specs.contrastive import ContrastiveSpec
from service.jobs.specs.experiment import ExperimentChoice

STABILITY = {"selection": "stability", "penalty_kind": "l1"}


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        (
            {"n_subsamples": 2},
            "no bound on the number of false edges with `n_subsamples=2`; increase it",
        ),
        ({"n_subsamples": 4, "inclusion_threshold": 0.6}, "increase it"),
    ],
)
def test_half_samples_too_few_for_their_threshold_are_refused(
    choices: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        ContrastiveSpec.model_validate({**STABILITY, **choices})
    # Nothing else looks at them.
    ContrastiveSpec.model_validate(choices)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        (
            {"selection": "ebic"},
            '`selection="ebic"` needs `penalty_kind="l1"`, whose zeros make a graph.',
        ),
        (
            {"selection": "ebic", "penalty_kind": "l1", "penalty": 1.0},
            '`selection="ebic"` needs `penalty="auto"`.',
        ),
        ({"penalties": [1.0], "penalty": 1.0}, '`penalties` are what `penalty="auto"` chooses'),
    ],
)
def test_a_way_of_choosing_a_penalty_needs_one_to_choose(
    choices: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        ContrastiveSpec.model_validate(choices)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"name": "graph-recovery", "graphs": ["ring", "ring"]}, "ring is listed twice"),
        ({"name": "graph-recovery", "fractions": [0.1, 0.3, 0.1]}, "0.1 is listed twice"),
        ({"name": "graph-recovery", "estimators": ["vnce", "vnce"]}, "vnce is listed twice"),
        ({"name": "graph-recovery", "n_data_sets": 1001}, "less than or equal to 1000"),
        ({"name": "mixture-population", "sample_sizes": [50, 50]}, "50 is listed twice"),
    ],
)
def test_experiments_that_would_count_twice_or_have_too_many_parts_are_refused(
    choices: dict[str, Any], said: str
) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(ExperimentChoice)
    with pytest.raises(ValidationError, match=said):
        adapter.validate_python(choices)
