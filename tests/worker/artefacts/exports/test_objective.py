from worker.artefacts.exports.objective import objective_artefact


def test_objective_leaves_a_value_that_is_not_finite_empty() -> None:
    artefact = objective_artefact([-1.5, float("nan"), 0.1 + 0.2])
    assert artefact.content == (
        b"iteration,objective,noise\n1,-1.5,1\n2,,1\n3,0.30000000000000004,1\n"
    )


def test_objective_says_which_noise_each_value_is_of() -> None:
    artefact = objective_artefact([-1.0, -0.5, -2.0, -3.0], starts=[2, 3])
    lines = artefact.content.decode().splitlines()[1:]
    assert [line.split(",")[2] for line in lines] == ["1", "1", "2", "3"]
