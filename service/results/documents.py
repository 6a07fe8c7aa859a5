"""The result documents of all kinds of job."""

from service.results.experiment_result import ExperimentPartResult, ExperimentResult
from service.results.mixture_result import MixtureResult
from service.results.schemas import EstimationResult
from service.results.scoring_result import ScoringResult
from service.results.simulation_result import SimulationResult

ResultDocument = (
    EstimationResult
    | MixtureResult
    | SimulationResult
    | ScoringResult
    | ExperimentResult
    | ExperimentPartResult
)
