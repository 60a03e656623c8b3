"""Training steps in PyTorch, as the papers' code takes them and as well as we can write them, beside ours in the same run.

    train.py BUILD_DIR

Published: one instance, autograd, a normalized step. Batched: all instances at once, gradient by hand, either as products of small
matrices (bmm) or with the instances last, so that every operation runs over a thousand neighbours; the latter also compiled
(torch.compile), where that works. Ours computes exact directions at any saturation; PyTorch's arithmetic is plain.
Least time of several rounds; ours and the peers take turns.
"""

import json
import subprocess
import sys
import time

import torch

torch.set_default_dtype(torch.float64)
STEP = 0.1


def unit(*shape):
    x = torch.randn(*shape)
    return x / x.norm(dim=-1, keepdim=True)


def task(*lead, n=6, T=8, d=10):
    return unit(*lead, n, T, d), unit(*lead, n, d), unit(*lead, d), torch.sign(torch.randn(*lead, n))


def seconds(step, steps):
    step()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - start) / steps


def published(factored):
    X, z, v, y = task()
    d = X.shape[-1]
    layers = torch.nn.ModuleList([torch.nn.Linear(d, d, bias=False) for _ in range(2 if factored else 1)])
    optimizer = torch.optim.SGD(layers.parameters(), lr=STEP)

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


def scores(X, v, y):
    """y vᵀx: constant, as long as the head is not trained."""
    return y.unsqueeze(-1) * torch.einsum("bntd,bd->bnt", X, v)


def batched(count, factored):
    X, Z, v, y = task(count)
    B, n, T, d = X.shape
    gamma, flat, Zt = scores(X, v, y).contiguous(), X.view(B * n, T, d), Z.transpose(1, 2).contiguous()
    K, Q = torch.randn(B, d, d) / d**0.5, torch.randn(B, d, d) / d**0.5

    def backward(U):
        s = torch.softmax(torch.bmm(flat, U.reshape(B * n, d, 1)).view(B, n, T), dim=-1)
        f = (s * gamma).sum(-1, keepdim=True)
        h = (gamma - f).mul_(s).mul_(torch.sigmoid(-f))
        return torch.bmm(h.view(B * n, 1, T), flat).view(B, n, d)

    def walk(array, G):
        array.add_(G.mul_(STEP / torch.linalg.vector_norm(G, dim=(1, 2), keepdim=True)))

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


def instances_last(count, factored, compiled):
    X, Z, v, y = task(count)
    gamma = scores(X, v, y).permute(1, 2, 0).contiguous()
    X, Z, d = X.permute(1, 2, 3, 0).contiguous(), Z.permute(1, 2, 0).contiguous(), X.shape[-1]
    point = [torch.randn(d, d, count) / d**0.5 for _ in range(2 if factored else 1)]

    def times(A, B):  # (i,k) (j,k) -> (i,j)
        return (A.unsqueeze(1) * B.unsqueeze(0)).sum(2)

    def outer(A, B):  # (i,a) (i,b) -> (a,b)
        return (A.unsqueeze(2) * B.unsqueeze(1)).sum(0)

    def walk(array, G):
        return array + G * (STEP / torch.sqrt((G * G).sum((0, 1), keepdim=True)))

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


def large(n=1000, T=128, d=256):
    X, Z, v, y = task(n=n, T=T, d=d)
    gamma, W = y.unsqueeze(-1) * (X @ v), torch.randn(d, d) / d**0.5

    @torch.no_grad()
    def step():
        s = torch.softmax(torch.bmm(X, (Z @ W.T).unsqueeze(-1)).squeeze(-1), dim=-1)
        f = (s * gamma).sum(-1, keepdim=True)
        h = (gamma - f).mul_(s).mul_(torch.sigmoid(-f))
        G = torch.bmm(h.unsqueeze(1), X).squeeze(1).T @ Z
        W.add_(G.mul_(STEP / G.norm()))
    return step


def main(build):
    count = 1000
    rows = [("one_" + p, f"(6,8,10) {p}, one run", "published", 1, 200, published(p == "KQ"), 1) for p in ("W", "KQ")]
    for p in ("W", "KQ"):
        rows.append(("many_" + p, f"(6,8,10) {p}, 1,000 runs", "published, one by one", 1, 200, published(p == "KQ"), 1))
        for name, make in (("batched, bmm", lambda: batched(count, p == "KQ")),
                           ("batched, instances last", lambda: instances_last(count, p == "KQ", False)),
                           ("the same, compiled", lambda: instances_last(count, p == "KQ", True))):
            rows.append(("many_" + p, f"(6,8,10) {p}, 1,000 runs", name, 2, 20, make(), count))
    for threads in (1, 2):
        rows.append(("large", "(1000,128,256)", "by hand", threads, 2, large(), 1))
    best, ours = {}, {}
    for _ in range(5):
        for key, value in json.loads(subprocess.run([f"{build}/bench_train", "json"], capture_output=True, check=True).stdout).items():
            ours[key] = min(value, ours.get(key, value))
        for k, (_, _, name, threads, steps, step, share) in enumerate(rows):
            torch.set_num_threads(threads)
            try:
                best[k] = min(seconds(step, steps) / share, best.get(k, float("inf")))
            except Exception as error:  # torch.compile needs a compiler and Python's headers
                best[k] = float("nan")
                print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
    print(f"{'a step of':<28}{'PyTorch':<26}{'threads':>8}{'us':>12}{'ours, us':>12}{'times ours':>12}")
    for k, (key, what, name, threads, *_) in enumerate(rows):
        print(f"{what:<28}{name:<26}{threads:>8}{1e6 * best[k]:>12.3f}{1e6 * ours[key]:>12.4f}{best[k] / ours[key]:>12.1f}")


if __name__ == "__main__":
    main(sys.argv[1])
