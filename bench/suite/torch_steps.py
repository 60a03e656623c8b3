"""A normalized training step in PyTorch: as the papers' code takes it, and as well as we can write it. `build` runs in a worker; its calls
take STEPS steps and return the memory that the process had before there were data."""

import numpy as np

STEPS, RATE = 20, 0.1


def build(way, param, path, count, threads, device="cpu"):
    import torch
    from suite.worker import resident_bytes
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    torch.set_flush_denormal(True)  # long runs saturate, and subnormal numbers are slow
    torch.set_default_device(device)
    before = resident_bytes("VmRSS:")
    way, graph = way.removesuffix(", graph"), way.endswith(", graph")
    step = WAYS[way](torch, param == "KQ", path, count)

    def steps():
        for _ in range(STEPS):
            step()
    if graph:
        steps = captured(torch, steps)

    def call():
        steps()
        if device == "cuda":
            torch.cuda.synchronize()
        return before
    return call


def captured(torch, work):
    """The same work as a CUDA graph, which starts all of its kernels at once."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def loaded(torch, path):
    """Tokens, queries, head and labels of a task file."""
    with np.load(path) as task:
        return [torch.from_numpy(task[name].astype(np.float64, copy=False)).to(torch.get_default_device()) for name in ("tokens", "queries", "head", "labels")]


def drawn(torch, count, path):
    """The same for `count` tasks of that file's sizes at once."""
    X, Z, *_ = loaded(torch, path)

    def unit(*shape):
        x = torch.randn(*shape)
        return x / x.norm(dim=-1, keepdim=True)
    return unit(count, *X.shape), unit(count, *Z.shape), unit(count, X.shape[-1]), torch.sign(torch.randn(count, len(X)))


def published(torch, factored, path, count):
    """Autograd through two or one linear layers; one instance."""
    X, z, v, y = loaded(torch, path)
    d = X.shape[-1]
    layers = torch.nn.ModuleList([torch.nn.Linear(d, d, bias=False) for _ in range(2 if factored else 1)])
    optimizer = torch.optim.SGD(layers.parameters(), lr=RATE)

    def step():
        optimizer.zero_grad()
        keys = layers[1](X) if factored else X
        s = torch.softmax((keys @ layers[0](z).unsqueeze(-1)).squeeze(-1), dim=-1)
        f = (X.transpose(1, 2) @ s.unsqueeze(-1)).squeeze(-1) @ v
        torch.log(1 + torch.exp(-y * f)).mean().backward()
        for parameter in layers.parameters():
            parameter.grad /= parameter.grad.norm() + 2.2e-16
        optimizer.step()
    return step


def by_hand(torch, factored, path, count):
    """The gradient written out; one instance. Scores y vᵀx are computed once, as the head is not trained."""
    X, Z, v, y = loaded(torch, path)
    gamma, d = y.unsqueeze(-1) * (X @ v), X.shape[-1]
    K, Q = torch.randn(d, d) / d**0.5, torch.randn(d, d) / d**0.5

    def backward(U):
        s = torch.softmax(torch.bmm(X, U.unsqueeze(-1)).squeeze(-1), dim=-1)
        f = (s * gamma).sum(-1, keepdim=True)
        h = (gamma - f).mul_(s).mul_(torch.sigmoid(-f))
        return torch.bmm(h.unsqueeze(1), X).squeeze(1)

    def walk(array, G):
        array.add_(G.mul_(RATE / torch.linalg.vector_norm(G)))

    @torch.no_grad()
    def step():
        if factored:
            q = Z @ Q
            g = backward(q @ K.T)
            m = g @ K
            walk(K, g.T @ q)
            walk(Q, Z.T @ m)
        else:
            walk(K, backward(Z @ K.T).T @ Z)
    return step


def batched(torch, factored, path, count):
    """All instances at once as products of small matrices (bmm)."""
    X, Z, v, y = drawn(torch, count, path)
    B, n, T, d = X.shape
    gamma = (y.unsqueeze(-1) * torch.einsum("bntd,bd->bnt", X, v)).contiguous()
    flat, Zt = X.view(B * n, T, d), Z.transpose(1, 2).contiguous()
    K, Q = torch.randn(B, d, d) / d**0.5, torch.randn(B, d, d) / d**0.5

    def backward(U):
        s = torch.softmax(torch.bmm(flat, U.reshape(B * n, d, 1)).view(B, n, T), dim=-1)
        f = (s * gamma).sum(-1, keepdim=True)
        h = (gamma - f).mul_(s).mul_(torch.sigmoid(-f))
        return torch.bmm(h.view(B * n, 1, T), flat).view(B, n, d)

    def walk(array, G):
        array.add_(G.mul_(RATE / torch.linalg.vector_norm(G, dim=(1, 2), keepdim=True)))

    @torch.no_grad()
    def step():
        if factored:
            q = torch.bmm(Z, Q)
            g = backward(torch.bmm(q, K.transpose(1, 2)))
            m = torch.bmm(g, K)
            walk(K, torch.bmm(g.transpose(1, 2), q))
            walk(Q, torch.bmm(Zt, m))
        else:
            walk(K, torch.bmm(backward(torch.bmm(Z, K.transpose(1, 2))).transpose(1, 2), Z))
    return step


def instances_last(torch, factored, path, count, compiled=False):
    """All instances at once, their index last, so that every operation runs over a thousand neighbours."""
    X, Z, v, y = drawn(torch, count, path)
    gamma = (y.unsqueeze(-1) * torch.einsum("bntd,bd->bnt", X, v)).permute(1, 2, 0).contiguous()
    X, Z, d = X.permute(1, 2, 3, 0).contiguous(), Z.permute(1, 2, 0).contiguous(), X.shape[-1]
    point = [torch.randn(d, d, count) / d**0.5 for _ in range(2 if factored else 1)]

    def times(A, B):  # (i,k) (j,k) -> (i,j)
        return (A.unsqueeze(1) * B.unsqueeze(0)).sum(2)

    def outer(A, B):  # (i,a) (i,b) -> (a,b)
        return (A.unsqueeze(2) * B.unsqueeze(1)).sum(0)

    def walk(array, G):
        return array + G * (RATE / torch.sqrt((G * G).sum((0, 1), keepdim=True)))

    def forward_backward(U):
        s = torch.softmax((X * U.unsqueeze(1)).sum(2), dim=1)
        f = (s * gamma).sum(1, keepdim=True)
        return (((gamma - f) * s * torch.sigmoid(-f)).unsqueeze(2) * X).sum(1)

    def plain(W):
        return [walk(W, outer(forward_backward(times(Z, W)), Z))]

    def factors(K, Q):
        q = times(Z, Q.transpose(0, 1))
        g = forward_backward(times(q, K))
        return [walk(K, outer(g, q)), walk(Q, outer(Z, times(g, K.transpose(0, 1))))]

    function = factors if factored else plain
    function = torch.compile(function) if compiled else function

    @torch.no_grad()
    def step():
        point[:] = function(*point)
    return step


def compiled(torch, factored, path, count):
    """The same through torch.compile."""
    return instances_last(torch, factored, path, count, compiled=True)


WAYS = {"published": published, "by hand": by_hand, "batched, bmm": batched, "batched, instances last": instances_last,
        "batched, compiled": compiled}
