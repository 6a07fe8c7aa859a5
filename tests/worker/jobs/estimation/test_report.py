"""The report of a real fit: valid HTML that needs nothing else and runs nothing of a name's."""

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from service.jobs.vocabulary import LinearChoice, Transform
from service.results.outcome import Outcome
from tests.report_pages import page_of, parsed, text_of
from worker.artefacts.report.methods import methods
from worker.artefacts.report.page import verdict
from worker.artefacts.report.references import cited
from worker.jobs.estimation import EstimationRequest, estimate

MakeRequest = Callable[..., EstimationRequest]

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }} & 体重", "b"]


@pytest.fixture(scope="module")
def outcome(make_request: MakeRequest) -> Outcome:
    request = make_request()
    named = request.table.rename_columns(HOSTILE)
    spec = request.spec.model_copy(update={"variables": HOSTILE})
    identity = request.dataset.model_copy(update={"name": "</title><script>x</script>.csv"})
    return estimate(replace(request, table=named, spec=spec, dataset=identity), lambda step: None)


@pytest.fixture(scope="module")
def page(outcome: Outcome) -> str:
    return page_of(outcome.artefacts)


def test_names_are_text_wherever_they_stand(page: str) -> None:
    root = parsed(page)
    assert list(root.iter("script")) == []
    assert {image.attrib["src"].partition(":")[0] for image in root.iter("img")} == {"data"}
    rows = {text_of(cell) for cell in root.iter("th") if cell.attrib.get("scope") == "row"}
    assert set(HOSTILE) <= rows
    assert root.findtext("head/title") == "Network of </title><script>x</script>.csv"


def test_the_page_needs_nothing_else(page: str) -> None:
    root = parsed(page)
    addresses = [
        e.attrib[name] for e in root.iter() for name in ("src", "href") if name in e.attrib
    ]
    assert addresses
    assert all(address.startswith("data:image/svg+xml;base64,") for address in addresses)
    assert list(root.iter("link")) == []
    [style] = root.iter("style")
    assert not re.search("url|@import", text_of(style))


def test_the_verdict_comes_first_and_headings_are_in_order(page: str, outcome: Outcome) -> None:
    [main] = parsed(page).iter("main")
    heading, paragraph = list(main)[:2]
    assert (heading.tag, paragraph.tag) == ("h1", "p")
    assert text_of(paragraph) == verdict(outcome.document)
    levels = [int(element.tag[1]) for element in main.iter() if element.tag in ("h1", "h2", "h3")]
    assert levels[0] == 1
    assert all(following - level <= 1 for level, following in itertools.pairwise(levels))


def test_every_figure_is_described_and_every_table_has_headings(page: str) -> None:
    root = parsed(page)
    images = list(root.iter("img"))
    assert len(images) >= 2
    assert all(image.attrib["alt"] for image in images)
    for table in root.iter("table"):
        assert all(cell.attrib["scope"] in ("row", "col") for cell in table.iter("th"))
        assert table.find("caption") is not None


def test_it_tells_of_every_pair_missing_cell_and_version(page: str, outcome: Outcome) -> None:
    said = text_of(parsed(page))
    result: Any = outcome.document
    for edge in outcome.edges:
        assert f"{edge.source} – {edge.target} {edge.scaled_interaction:+.3f}" in said
    assert f"{result.counts.n_missing / (120 * 4):.1%} of the cells are missing" in said
    assert result.assumption in said
    assert f"VNCE {result.versions.vnce}" in said
    assert "vnce fit" in said
    assert "Rhodes and M. U. Gutmann (2019)" in said


def test_works_that_are_cited_are_listed_and_no_others() -> None:
    works = cited("K was estimated (Besag, 1975), and tested (White, 1982).")
    assert [work.split(" (")[0] for work in works] == ["J. Besag", "H. White"]


@pytest.mark.slow
def test_a_transform_that_was_chosen_is_told_with_what_it_was_compared_to(
    make_request: MakeRequest,
) -> None:
    request = make_request(model={"kind": "truncated-gaussian", "transform": "auto"})
    outcome = estimate(request, lambda step: None)
    said = text_of(parsed(page_of(outcome.artefacts)))
    result: Any = outcome.document
    assert len(result.transform_evidence) > 1
    for step in result.transform_evidence:
        assert f" {step.log_density:.4f} " in said
    assert "was chosen by the log density of held-out rows" in said


def test_transforms_of_each_variable_are_counted(outcome: Outcome, make_request: Any) -> None:
    transforms = [Transform.CBRT, Transform.NONE, Transform.CBRT, Transform.CBRT]
    result = outcome.document.model_copy(update={"transform": transforms})
    assert "3 cube-root transformed; 1 untransformed" in methods(make_request().spec, result)


def test_how_sure_edges_are_is_said_of_the_model_at_hand(
    outcome: Outcome, make_request: MakeRequest
) -> None:
    found: Any = outcome.document
    assert found.uncertainty.reason is None
    uncertainty = found.uncertainty.model_copy(update={"linear": LinearChoice.FREE})
    linear = found.linear.model_copy(update={"choice": LinearChoice.ZERO})
    result = found.model_copy(update={"uncertainty": uncertainty, "linear": linear})
    of_truncated = methods(make_request().spec, result)
    assert "one Newton step of the Monte-Carlo likelihood of the observed cells" in of_truncated
    assert "A test found a linear term" in of_truncated
    of_gaussian = methods(make_request(model={"kind": "gaussian"}).spec, found)
    assert "one Newton step of the noise-contrastive objective" in of_gaussian
    assert "A test found" not in of_gaussian


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        {"kind": "vnce", "penalty": 1.0, "max_iter": 1},
        {"kind": "gaussian-em"},
        {"kind": "nce", "imputation": "zero", "penalty_kind": "l1", "penalties": [0.2, 0.4]},
        {"kind": "score-matching", "imputation": "mean"},
    ],
    ids=str,
)
def test_every_kind_of_result_has_a_valid_page_with_all_its_cited(
    estimator: dict[str, Any], make_request: MakeRequest
) -> None:
    model = "gaussian" if estimator["kind"] == "gaussian-em" else "truncated-gaussian"
    outcome = estimate(make_request(estimator=estimator, model={"kind": model}), lambda step: None)
    root = parsed(page_of(outcome.artefacts))
    said = text_of(root)
    result: Any = outcome.document
    assert ("The fit did not converge" in said) == (not result.convergence.converged)
    if result.uncertainty.reason is not None:
        assert f"No confidence intervals: {result.uncertainty.reason}" in said
    cited = re.findall(r"[\w.]+, (\d{4})[);]", said)
    assert cited or estimator["kind"] == "score-matching"
    assert all(f"({year}). " in said for year in cited)
