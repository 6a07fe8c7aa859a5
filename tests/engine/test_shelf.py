import torch

from vnce_engine.blocks import Block
from vnce_engine.shelf import Shelf


def test_what_is_laid_on_a_shelf_stays_as_it_was_beside_what_comes_after() -> None:
    tensors = [
        torch.arange(7, dtype=torch.int16),
        torch.rand(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)),
        torch.empty(2, 0, dtype=torch.int32),
        torch.rand(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).mT,
    ]
    shelf = Shelf()
    laid = [shelf.lay(tensor) for tensor in tensors]
    for tensor, copy in zip(tensors, laid, strict=True):
        assert torch.equal(tensor, copy)
        assert tensor.dtype == copy.dtype
        assert copy.is_contiguous()


def test_neighbours_share_a_piece_of_memory_and_no_part_of_it() -> None:
    shelf = Shelf()
    one, other = shelf.lay(torch.zeros(3)), shelf.lay(torch.zeros(4))
    assert one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
    one += 1.0
    assert other.tolist() == [0.0] * 4


def test_a_tensor_larger_than_a_piece_finds_its_place() -> None:
    shelf = Shelf()
    shelf.lay(torch.zeros(3))
    assert len(shelf.lay(torch.ones(2**23, dtype=torch.float64))) == 2**23


def test_means_of_noise_rows_alone_are_kept_in_single_precision() -> None:
    values = torch.ones(4, 2, dtype=torch.float64)
    observed = torch.tensor([[True, False]]).repeat(4, 1)
    for is_noise, dtype in ((True, torch.float32), (False, torch.float64)):
        block = Block.of_rows(
            values,
            observed,
            column_mean=torch.ones(2, dtype=torch.float64),
            ceiling=values[0],
            is_noise=is_noise,
            uniforms=torch.full((1, 4), 0.5, dtype=torch.float64),
            owner=torch.arange(4),
            log_noise=values[:, 0],
        )
        assert block.cell_mean.dtype == dtype
        assert block.expected_rows(block.cells()).dtype == torch.float64
