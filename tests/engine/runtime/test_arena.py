import torch

from vnce_engine.runtime.arena import Arena


def test_what_is_laid_on_a_shelf_stays_as_it_was_beside_what_comes_after() -> None:
    tensors = [
        torch.arange(7, dtype=torch.int16),
        torch.rand(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)),
        torch.empty(2, 0, dtype=torch.int32),
        torch.rand(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).mT,
    ]
    arena = Arena()
    laid = [arena.store(tensor) for tensor in tensors]
    for tensor, copy in zip(tensors, laid, strict=True):
        assert torch.equal(tensor, copy)
        assert tensor.dtype == copy.dtype
        assert copy.is_contiguous()


def test_neighbours_share_a_piece_of_memory_and_no_part_of_it() -> None:
    arena = Arena()
    one, other = arena.store(torch.zeros(3)), arena.store(torch.zeros(4))
    assert one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
    one += 1.0
    assert other.tolist() == [0.0] * 4


def test_a_tensor_larger_than_a_piece_finds_its_place() -> None:
    arena = Arena()
    arena.store(torch.zeros(3))
    assert len(arena.store(torch.ones(2**23, dtype=torch.float64))) == 2**23
