"""Messages of the service name the flags of the command line."""

from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from worker.cli.flag_names import flag_at, flag_of, in_flags
from worker.cli.options import ESTIMATION
from worker.cli.spec_options import with_options


@pytest.mark.parametrize(
    ("pointer", "flag"),
    [
        ("/estimator/noise_ratio", "--noise-ratio"),
        ("/estimator/penalties/3", "--penalties"),
        ("/estimator/kind", "--estimator"),
        ("/model/kind", "--model"),
        ("/variables", "--variable"),
        ("/dataset_id", "DATASET"),
        ("/ground_truth/edges/0/source", "--truth"),
        ("/experiment/n_data_sets", "--n-data-sets"),
        ("/missing_fraction", "--missing"),
        ("/units_row", "--units-row"),
        ("/edges/0", "/edges/0"),
        ("/specifications", "--model"),
        ("/specifications/2", "--model number 3"),
        ("/specifications/0/estimator/noise_ratio", "--model number 1, noise-ratio"),
        ("", ""),
    ],
)
def test_a_place_in_a_request_is_the_flag_that_fills_it(pointer: str, flag: str) -> None:
    assert flag_at(pointer) == flag


@pytest.mark.parametrize(
    ("parameter", "flag"),
    [("na_values", "--na-value"), ("units_row", "--units-row"), ("cursor", "--cursor")],
)
def test_a_parameter_of_a_query_is_a_flag(parameter: str, flag: str) -> None:
    assert flag_of(parameter) == flag


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Set `units_row=true` to keep it.", "Set --units-row to keep it."),
        ("name those in `na_values`.", "name those in --na-value."),
        ("if so, set `decimal=,`", "if so, set --decimal ,"),
        ('set `penalty=1` and `penalty_kind="ridge"`', "set --penalty 1 and --penalty-kind ridge"),
        ("`selection='ebic'` needs more rows", "--selection ebic needs more rows"),
        ("Say `penalties=[0.5]` to decide", "Say --penalties 0.5 to decide"),
        ("try `penalties=[3, 1]`", "try --penalties 3,1"),
        ("or raise `max_iter`", "or raise --max-iter"),
        ("try `model`", "try --model"),
        ("the job's `spec` says", "the job's `spec` says"),
        ("penalty auto, or a new_word", "penalty auto, or a new_word"),
    ],
)
def test_fields_in_backquotes_are_flags(message: str, told: str) -> None:
    assert in_flags(message) == told


def test_a_list_is_told_as_the_command_line_takes_it() -> None:
    requests = []
    app = typer.Typer()

    @app.command()
    @with_options(ESTIMATION)
    def fit(**given: Any) -> None:
        requests.append(ESTIMATION.document(given))

    told = in_flags("`penalties=[3, 0.5]`")
    assert CliRunner().invoke(app, told.split()).exit_code == 0
    assert requests[0]["estimator"]["penalties"] == [3.0, 0.5]
