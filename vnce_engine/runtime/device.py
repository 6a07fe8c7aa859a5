"""Where tensors live: on the CPU, or on a CUDA device."""

import torch

from vnce_engine.runtime.checks import shown


def chosen_device(device: str | torch.device) -> torch.device:
    """Return the device of that name; "auto" is CUDA where there is a device, else the CPU.

    Raises `ValueError` for CUDA where there is none, and for a name that torch does not know.
    """
    rule = f"`device` must be 'auto', 'cpu' or 'cuda', got {shown(device)}"
    if not isinstance(device, str | torch.device):
        raise ValueError(rule)
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ValueError(rule) from error
    num_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if chosen.type == "cuda" and (chosen.index or 0) >= num_devices:
        raise ValueError(
            f"`device={str(device)!r}` needs a CUDA device, and torch finds {num_devices} here"
        )
    return chosen
