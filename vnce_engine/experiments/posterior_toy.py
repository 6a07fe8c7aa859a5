"""Posteriors of the product-latent toy by VI and by VNCE (Figures 1 and 2 of the paper).

Four ways of fitting one network family to one sample: variational inference; VNCE with noise that
matches the data; VNCE with wide noise at nu = 1 and at nu = 100. Where the noise is likely under
the data or nu is large, VNCE's divergence is near VI's (Theorem 1).
Source: Rhodes and Gutmann (2019), Section 4.1 and the appendix on its experiment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vnce_engine.black_box.adam import raise_by_adam
from vnce_engine.black_box.gaussian_noise import GaussianNoise
from vnce_engine.black_box.network_family import NetworkFamily
from vnce_engine.black_box.objectives import elbo, log_weight
from vnce_engine.contrastive.objective import data_term
from vnce_engine.distributions.uniforms import open_uniforms
from vnce_engine.estimators.seeds import numbered_generator
from vnce_engine.experiments.experiment import Part, Row, SummaryTable
from vnce_engine.experiments.product_latent import ProductLatent
from vnce_engine.runtime.checks import check_count, check_positive, check_seed
from vnce_engine.runtime.progress import OnStep

TRUTH = "true posterior"
METHODS: dict[str, tuple[str, float] | None] = {
    "VI": None,
    "VNCE, good noise": ("good", 1.0),
    "VNCE, bad noise, nu = 1": ("bad", 1.0),
    "VNCE, bad noise, nu = 100": ("bad", 100.0),
}
BAD_VARIANCE = 30.0
LANDMARKS = ((0.0, 0.0), (1.0, 1.0), (-2.0, -2.0))
# Points that stand for a distribution in the figure.
_NUM_POINTS = 1_000
_SECONDS_PER_STEP = 1.4e-3


@dataclass(frozen=True)
class PosteriorToy:
    """The experiment; a part is a method, the first one the true posterior."""

    name: ClassVar[str] = "posterior-toy"

    num_rows: int = 10_000
    num_epochs: int = 50
    batch_size: int = 100
    step_size: float = 1e-3
    grid: tuple[float, int] = (3.5, 41)
    """Densities are given from minus to plus this in both latents, at so many points each."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("num_rows", self.num_rows)
        check_count("num_epochs", self.num_epochs)
        check_count("batch_size", self.batch_size)
        check_positive("step_size", self.step_size)
        check_seed("seed", self.seed)

    @classmethod
    def quick(cls, seed: int = 0) -> "PosteriorToy":
        """Return the experiment itself, which takes half a minute."""
        return cls(seed=seed)

    def parts(self) -> tuple[Part, ...]:
        """Return a part for the truth and one for each method."""
        seconds = _SECONDS_PER_STEP * self.num_epochs * self.num_rows / self.batch_size
        return (Part(TRUTH, 1.0), *(Part(method, seconds) for method in METHODS))

    def run(self, index: int, on_step: OnStep | None = None) -> tuple[Row, ...]:
        """Return tables `points` (with the truth), `densities` and `scores` (with a method)."""
        model = ProductLatent()
        data = torch.Generator().manual_seed(
            int(numbered_generator(self.seed, 0).integers(2**63 - 1))
        )
        x, z = model.sample(self.num_rows, data)
        if index == 0:
            return (*_points(x, z, data), *self._density_rows(TRUTH, self._log_truth(model)))
        method = list(METHODS)[index - 1]
        family = NetworkFamily()
        own = numbered_generator(self.seed, index)
        generator = torch.Generator().manual_seed(int(own.integers(2**63 - 1)))
        alpha = self._fit(model, family, method, x, generator, on_step)
        landmarks = torch.tensor(LANDMARKS, dtype=torch.float64)
        divergences = _divergences(model, family, alpha, landmarks).tolist()
        return (
            {
                "table": "scores",
                "method": method,
                "mean_elbo": float(model.elbo(x, *family.moments(alpha, x)).mean()),
                "mean_kl": float(_divergences(model, family, alpha, x).mean()),
                **{f"kl_{i + 1}": value for i, value in enumerate(divergences)},
            },
            *self._density_rows(method, self._log_q(family, alpha)),
        )

    def summarise(self, rows: Sequence[Row]) -> tuple[SummaryTable, ...]:
        """Return the evidence lower bound and the divergence from the truth of each method."""
        columns = (
            "method",
            "mean_elbo",
            "mean_kl",
            *(f"kl_{i + 1}" for i in range(len(LANDMARKS))),
        )
        points = ", ".join(f"({a:g}, {b:g})" for a, b in LANDMARKS)
        return (
            SummaryTable(
                "scores",
                "Evidence lower bound and KL(q || true posterior), means over the data, and the "
                f"latter at x = {points}; nats",
                columns,
                tuple(
                    tuple(row[column] for column in columns)
                    for row in rows
                    if row["table"] == "scores"
                ),
            ),
        )

    def _fit(
        self,
        model: ProductLatent,
        family: NetworkFamily,
        method: str,
        x: Tensor,
        generator: torch.Generator,
        on_step: OnStep | None,
    ) -> Tensor:
        theta = x.new_empty(0)
        contrast = METHODS[method]
        log_noise = None if contrast is None else _noise(contrast[0], x).log_prob(x)

        def objective(alpha: Tensor, batch: Tensor) -> Tensor:
            u = x[batch]
            draws = family.rsample(alpha, u, open_uniforms((1, len(batch), 2), generator))
            weights = log_weight(model, family, theta, alpha, u, draws)
            if contrast is None or log_noise is None:
                return elbo(weights)
            return data_term(weights - log_noise[batch], contrast[1])

        return raise_by_adam(
            objective,
            family.start(generator),
            self.num_rows,
            num_epochs=self.num_epochs,
            batch_size=self.batch_size,
            step_size=self.step_size,
            generator=generator,
            on_step=on_step,
        )

    def _latent_grid(self) -> Tensor:
        """Return the grid of latents (g², 2), the first coordinate slowest."""
        limit, count = self.grid
        line = torch.linspace(-limit, limit, count, dtype=torch.float64)
        return torch.cartesian_prod(line, line)

    def _log_truth(self, model: ProductLatent) -> Tensor:
        """Return the log posterior density (landmarks, g²), by quadrature of p(x)."""
        z = self._latent_grid().unsqueeze(1)  # (g², 1, 2): each point a draw
        landmarks = torch.tensor(LANDMARKS, dtype=torch.float64)
        log_joint = model.log_phi(z.new_empty(0), landmarks, z.expand(-1, len(LANDMARKS), -1))
        return (log_joint - model.log_marginal(landmarks)).mT

    def _log_q(self, family: NetworkFamily, alpha: Tensor) -> Tensor:
        """Return the log density (landmarks, g²) of q."""
        z = self._latent_grid().unsqueeze(1)
        landmarks = torch.tensor(LANDMARKS, dtype=torch.float64)
        return family.log_prob(alpha, z.expand(-1, len(LANDMARKS), -1), landmarks).mT

    def _density_rows(self, method: str, log_density: Tensor) -> tuple[Row, ...]:
        grid = self._latent_grid().tolist()
        return tuple(
            {
                "table": "densities",
                "method": method,
                "landmark": landmark + 1,
                "z1": z1,
                "z2": z2,
                "density": float(density),
            }
            for landmark in range(len(LANDMARKS))
            for (z1, z2), density in zip(grid, log_density[landmark].exp(), strict=True)
        )


def _noise(kind: str, x: Tensor) -> GaussianNoise:
    return GaussianNoise.fit(x) if kind == "good" else GaussianNoise.isotropic(BAD_VARIANCE, 2)


def _points(x: Tensor, z: Tensor, generator: torch.Generator) -> tuple[Row, ...]:
    """Return samples of the latents, the data and both noises."""
    samples = {"latents": z, "data": x}
    for kind in ("good", "bad"):
        uniforms = open_uniforms((_NUM_POINTS, 2), generator)
        samples[f"{kind} noise"] = _noise(kind, x).sample(uniforms)
    return tuple(
        {"table": "points", "sample": name, "first": float(a), "second": float(b)}
        for name, points in samples.items()
        for a, b in points[:_NUM_POINTS]
    )


def _divergences(model: ProductLatent, family: NetworkFamily, alpha: Tensor, x: Tensor) -> Tensor:
    """Return KL(q || true posterior) (n,) of rows x (n, 2)."""
    return model.log_marginal(x) - model.elbo(x, *family.moments(alpha, x))
