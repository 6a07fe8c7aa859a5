"""Anderson acceleration of a fixed-point iteration."""

from collections.abc import Callable

import torch
from torch import Tensor

_MEMORY = 3


class Acceleration:
    """Extrapolates theta -> F(theta) from its last few steps.

    The next point is the combination of recent images whose residuals F(theta) - theta cancel best
    in least squares. EM converges linearly, at the rate of the missing information; this
    typically halves its cycles. Far from the fixed point, where F is not nearly linear, residuals
    may grow; then the memory is dropped and the plain image taken.
    Source: Walker and Ni (2011), "Anderson acceleration for fixed-point iterations", SIAM J.
    Numer. Anal. 49.
    """

    def __init__(self) -> None:
        self._residual_steps: list[Tensor] = []
        self._image_steps: list[Tensor] = []
        self._last: tuple[Tensor, Tensor] | None = None

    def next_point(
        self, point: Tensor, image: Tensor, measured: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return where to go from `point` and its `image`, of any shape.

        `measured`, linear, returns a residual in the coordinates whose squares are summed.
        """
        residual = image - point
        if self._last is not None:
            last_residual, last_image = self._last
            if measured(residual).norm() > measured(last_residual).norm():
                self.restart()
                self._last = (residual, image)
                return image
            self._residual_steps = [*self._residual_steps, residual - last_residual][-_MEMORY:]
            self._image_steps = [*self._image_steps, image - last_image][-_MEMORY:]
        self._last = (residual, image)
        if not self._residual_steps:
            return image
        steps = torch.stack([measured(step).flatten() for step in self._residual_steps], dim=1)
        # The pseudo-inverse copes with steps that are almost parallel.
        weights = torch.linalg.pinv(steps, rtol=1e-8) @ measured(residual).flatten()
        extrapolation: Tensor = torch.tensordot(weights, torch.stack(self._image_steps), dims=1)
        return image - extrapolation

    def restart(self) -> None:
        """Forget everything."""
        self._residual_steps, self._image_steps, self._last = [], [], None

    def change_map(self) -> None:
        """Note that F has changed a little: its old slopes still serve, its old values do not."""
        self._last = None
