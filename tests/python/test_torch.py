"""PyTorch tensors come in through DLPack."""

import attsvm
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (Debian: python3-torch)")


def test_tensors_are_arrays():
    torch.manual_seed(0)
    tokens, queries, head = (torch.randn(*size, dtype=torch.float64) for size in ((6, 8, 10), (6, 10), (10,)))
    task = attsvm.Task(tokens, queries=queries, head=head)
    assert np.shares_memory(task.tokens, tokens.numpy())
    same = attsvm.Task(tokens.numpy(), queries=queries.numpy(), head=head.numpy())
    solution = attsvm.solve(task)
    assert attsvm.verify(task, solution) and (solution.W == attsvm.solve(same).W).all()
    assert attsvm.verify(task, torch.tensor(solution.W))
    assert (attsvm.solve(task, select=torch.tensor(task.optimal)).W == solution.W).all()


def test_other_tensors():
    numbers = torch.randn(6, 8, 10)
    np.testing.assert_array_equal(attsvm.Task(numbers).tokens, numbers.double().numpy())
    np.testing.assert_array_equal(attsvm.Task(numbers.transpose(0, 1)).tokens, numbers.double().numpy().swapaxes(0, 1))
    learned = torch.randn(6, 8, 10, dtype=torch.float64, requires_grad=True)
    assert np.shares_memory(attsvm.Task(learned).tokens, learned.detach().numpy())
    ragged = [torch.randn(length, 4) for length in (2, 3)]
    assert attsvm.Task(ragged).lengths.tolist() == [2, 3]


def test_refusals():
    with pytest.raises(TypeError, match="tokens"):
        attsvm.Task(torch.randn(2, 3, 4).to(torch.complex64))
    with pytest.raises(TypeError, match="tokens"):
        attsvm.Task(torch.randn(2, 3, 4).to_sparse())
    with pytest.raises(TypeError, match="tokens"):
        attsvm.Task(torch.empty(2, 3, 4, device="meta"))
    with pytest.raises(ValueError, match=r"tokens\[0,0,0\]"):
        attsvm.Task(torch.full((2, 3, 4), float("nan")))


def test_a_softmax_layer_agrees():
    """The same logits and gradient as a layer that PyTorch differentiates."""
    task = attsvm.generate("random", seed=1)
    arrays = {name: torch.tensor(np.array(value)) for name, value in task.to_dict().items()}
    W = torch.zeros(10, 10, dtype=torch.float64, requires_grad=True)
    logits = torch.einsum("ntd,de,ne->nt", arrays["tokens"], W, arrays["queries"])
    outputs = torch.einsum("nt,ntd,d->n", torch.softmax(logits, 1), arrays["tokens"], arrays["head"])
    torch.nn.functional.softplus(-arrays["labels"] * outputs).mean().backward()
    step = attsvm.train(task, steps=1, optimizer="gd", step=1.0).W
    np.testing.assert_allclose(step, -W.grad.numpy(), rtol=1e-12, atol=1e-15)
