from io import StringIO

from rich.console import Console

from worker.cli.progress import board, show_job


def lines_without_terminal(*steps: tuple[str, float, float | None]) -> list[str]:
    console = Console(file=StringIO(), width=100)
    with board(console) as add:
        show = add("table.csv")
        for step in steps:
            show(*step)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def test_without_a_terminal_each_stage_and_each_quarter_gets_a_line() -> None:
    lines = lines_without_terminal(
        ("prepare", 0.0, None),
        ("fit", 0.02, None),
        ("fit", 0.1, -1.5),
        ("fit", 0.3, -1.25),
        ("export", 1.0, None),
    )
    assert lines == [
        "table.csv: prepare 0%",
        "table.csv: fit 2%",
        "table.csv: fit 30% objective -1.2500",
        "table.csv: export 100%",
    ]


def test_on_a_terminal_a_bar_shows_stage_share_and_objective() -> None:
    console = Console(file=StringIO(), width=120, force_terminal=True)
    with board(console) as add:
        add("VNCE")("fit", 0.5, -1.25)
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    assert all(part in shown for part in ("VNCE", "fit", "50%", "objective -1.2500"))


def test_a_job_that_waits_shows_its_state_and_one_that_succeeded_is_done() -> None:
    shown = []

    def show(stage: str, fraction: float, objective: float | None) -> None:
        shown.append((stage, fraction, objective))

    progress = {"stage": "fit", "fraction": 0.4, "objective": -2.0}
    show_job(show, {"state": "queued", "progress": None})
    show_job(show, {"state": "running", "progress": progress})
    show_job(show, {"state": "succeeded", "progress": progress})
    assert shown == [("queued", 0.0, None), ("fit", 0.4, -2.0), ("done", 1.0, -2.0)]
