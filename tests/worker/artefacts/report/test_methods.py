"""What is said of how compared models were estimated, of what each chose and was told."""

import re
from pathlib import Path
from typing import Any

import pytest

from service.jobs.specs.estimation import EstimationSpec
from service.jobs.vocabulary import Transform
from service.results.comparison_result import ComparedFitRead
from service.results.vocabulary import EdgeRule
from worker.artefacts import report
from worker.artefacts.report.methods import compared_methods
from worker.artefacts.report.references import _REFERENCES


def said(
    fit: ComparedFitRead | None = None, model: str = "truncated-gaussian", **asked: Any
) -> str:
    """Return the paragraph of a model by what is `asked` of the estimator, and of the model."""
    of_model = {name: asked.pop(name) for name in ("linear", "transform") if name in asked}
    body = {"model": {"kind": model, **of_model}, "estimator": {"kind": "vnce"} | asked}
    spec = EstimationSpec.model_validate({"dataset_id": "dataset_1", **body})
    return compared_methods(spec, fit, 4)


def fit(decided_by: EdgeRule, transform: Any = Transform.NONE) -> ComparedFitRead:
    return ComparedFitRead(
        converged=True,
        transform=transform,
        decided_by=decided_by,
        n_selected=1,
        n_unconverged_folds=0,
        monte_carlo_error=0.0,
        warnings=[],
    )


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({}, "Held-out rows decided whether the linear term h was estimated or zero."),
        ({"linear": "free"}, "The linear term h was estimated."),
        ({}, "or a ridge towards the interactions' mean; its strength was chosen by the objective"),
        ({"penalty": 0.5, "penalty_kind": "ridge"}, "a ridge; its strength, 0.5, was set by hand."),
        ({"penalty_kind": "l1", "selection": "stability"}, "stability selection (Meinshausen"),
        ({"kind": "mle", "penalty": 1.0}, "of the scaled interactions"),
        (
            {"kind": "gaussian-em", "penalty": "ebic"},
            "a graphical lasso; its strength was chosen by",
        ),
        ({"kind": "gaussian-em", "penalty": "cv"}, "chosen by the objective of held-out rows."),
        ({"transform": "auto"}, "with a transform that held-out rows choose"),
    ],
)
def test_what_a_model_was_told_is_said_without_a_fit(asked: dict[str, Any], text: str) -> None:
    model = "gaussian" if asked.get("kind") == "gaussian-em" else "truncated-gaussian"
    paragraph = said(model=model, **asked)
    assert paragraph.startswith("The 4 variables, ")
    assert text in paragraph
    assert ("linear term" in paragraph) is (model == "truncated-gaussian")


def test_without_a_penalty_nothing_is_said_of_one() -> None:
    assert "penalty" not in said(penalty=None)


def test_what_a_fit_chose_and_how_pairs_were_selected_is_said() -> None:
    by_rate = said(fit(EdgeRule.FALSE_DISCOVERY_RATE, [Transform.CBRT] * 4), transform="auto")
    assert "4 cube-root transformed, were modelled" in by_rate
    assert "That transform was chosen by the log density of held-out rows." in by_rate
    assert "at a false discovery rate of 0.1 (Benjamini and Hochberg, 1995)." in by_rate
    by_size = said(fit(EdgeRule.THRESHOLD), kind="mle")
    assert "Pairs of a partial correlation of 0.1 or more were selected." in by_size


def test_every_work_that_a_report_may_cite_is_among_its_references() -> None:
    folder = Path(report.__file__).parent
    texts = [path.read_text() for path in folder.glob("*.py") if path.stem != "references"]
    citations = re.findall(r"[A-Z]\w+(?: et al\.)?, (?:19|20)\d\d", " ".join(texts))
    assert len(set(citations)) > 15
    assert [one for one in set(citations) if not any(one in work for work in _REFERENCES)] == []
