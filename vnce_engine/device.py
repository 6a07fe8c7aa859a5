"""Where tensors live: on the CPU, or on a CUDA device."""

import torch


def chosen_device(device: str | torch.device) -> torch.device:
    """Return the device of that name; "auto" is CUDA where there is a device, else the CPU.

    Raises `ValueError` for CUDA where there is none, and for a name that torch does not know.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"`device` must be 'auto', 'cpu' or 'cuda', got {device!r}") from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"`device={str(device)!r}` needs a CUDA device, and torch finds none here")
    return chosen
