"""Every picture returns its Axes, takes ax=, and shows what it says."""

import attsvm
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

matplotlib.use("agg")
TASK = attsvm.generate("random", seed=1)
RUN = attsvm.train(TASK, record="every:100")
SOLUTION = attsvm.solve(TASK, select=RUN.selected)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("draw", [
    lambda **k: attsvm.plot.paths(RUN, SOLUTION, task=TASK, queries=[0, 1], **k),
    lambda **k: attsvm.plot.correlation([RUN], [SOLUTION, SOLUTION.W], **k),
    lambda **k: attsvm.plot.correlation(RUN, SOLUTION, distance=True, labels=["W"], **k),
    lambda **k: attsvm.plot.attention(TASK, RUN, solution=SOLUTION, **k),
    lambda **k: attsvm.plot.singular_values(SOLUTION, RUN, np.eye(3), **k),
    lambda **k: attsvm.plot.regularization_path(attsvm.path(attsvm.generate(n=2, T=3, d=3), [1, 10], starts=1), **k),
])
def test_axes(draw):
    ax = plt.subplots()[1]
    assert draw(ax=ax) is ax
    assert isinstance(draw(), matplotlib.axes.Axes)
    ax.figure.canvas.draw()


def test_the_numbers_are_those_of_the_run():
    ax = attsvm.plot.correlation(RUN, SOLUTION)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), RUN.correlation(SOLUTION))
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), RUN.record_step)
    margins = {(text.get_position()[1], text.get_position()[0]): float(text.get_text())
               for text in attsvm.plot.attention(TASK, RUN, solution=SOLUTION).texts}
    assert len(margins) == 42 and min(margins.values()) == 1
    with pytest.raises(ValueError, match="task"):
        attsvm.plot.paths(RUN)


def test_curves_differ_without_colour_and_have_names():
    nuclear = attsvm.solve(TASK, select=RUN.selected, norm="nuc")
    ax = attsvm.plot.correlation([RUN, RUN], [SOLUTION, nuclear])
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["Frobenius SVM, run 0", "nuclear SVM, run 0", "Frobenius SVM, run 1", "nuclear SVM, run 1"]
    assert len({(line.get_linestyle(), line.get_marker()) for line in ax.lines}) == 4
    rays = attsvm.plot.paths(RUN, [SOLUTION, nuclear], task=TASK, queries=[0, 1])
    assert [text.get_text() for text in rays.get_legend().get_texts()][2:] == ["Frobenius SVM", "nuclear SVM"]


def test_published_figures(tmp_path):
    report = attsvm.reproduce("svm-rank", "gd-paths", "local-convergence", runs=1, out=tmp_path)
    for study in report.studies:
        axes = attsvm.plot.figure(study)
        panels = study.data["figure"]["panels"]
        assert len(axes) == len(panels)
        for ax, panel in zip(axes, panels):
            assert len(ax.lines) >= 1 and ax.get_xlabel() == panel["x_label"]
        axes[0].figure.canvas.draw()
    alone = plt.subplots()[1]
    assert attsvm.plot.figure(tmp_path / "svm-rank/data.json", 2, ax=alone) is alone
    with pytest.raises(ValueError, match="panels"):
        attsvm.plot.figure(report["svm-rank"], ax=[alone])
