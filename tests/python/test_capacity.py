"""attsvm.capacity."""

import dataclasses
import json
import pickle

import attsvm
import numpy as np
import pytest
from test_long_calls import interrupted


def test_fields_have_their_types():
    found = attsvm.capacity(12, 4, 4, width=2, heads=2, draws=20, runs=4, want=0.8)
    assert isinstance(found.separable, attsvm.Share) and found.separable.of == 20
    assert isinstance(found.rank, attsvm.Spread) and found.rank.most <= 4
    assert found.global_.of == 4 and found.fits_width.count <= found.separable.count
    search = found.smallest_d
    assert search.complete and search.low <= search.high and all(share.of == 20 for share in search.points.values())
    assert repr(found).startswith("Capacity(n=12, T=4, d=4, dz=4") and "smallest_d" in repr(found)
    assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()


def test_same_numbers_for_any_number_of_threads():
    one, two = (attsvm.capacity(8, 5, 3, attention="self", draws=30, runs=0, want=0, threads=k) for k in (1, 2))
    assert one.to_dict() == two.to_dict() and one.global_ is None and one.smallest_d is None


@pytest.mark.parametrize("sizes, words", [((0, 4, 4), "n"), ((4, 1, 4), "T"), ((4, 4, 0), "d")])
def test_bad_sizes_are_refused(sizes, words):
    with pytest.raises(ValueError, match=words):
        attsvm.capacity(*sizes)
    with pytest.raises(ValueError, match="attention = causal"):
        attsvm.capacity(4, 4, 4, attention="causal")


def test_a_page(tmp_path):
    found = attsvm.capacity(12, 4, 4, draws=20, runs=0, page=tmp_path / "sizes.html")
    data = json.loads((tmp_path / "sizes.html").read_text().split('id="data">')[1].split("</script>")[0])
    assert data["kind"] == "capacity" and data["separable"]["count"] == found.separable.count
    assert data["smallest_d"]["high"] == found.smallest_d.high
    with pytest.raises(FileExistsError):
        attsvm.capacity(12, 4, 4, draws=20, runs=0, page=tmp_path / "sizes.html")


def test_the_command_on_a_page_makes_it_again(tmp_path):
    page = tmp_path / "sizes.html"
    options = dict(dz=np.int64(3), width=2, heads=2, draws=10, runs=0, want=0, seed=4)
    attsvm.capacity(np.int64(8), 4, 4, **options, page=page)
    before = page.read_bytes()
    command = json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])["command"]
    assert command == (f"attsvm.capacity(8, 4, 4, dz=3, width=2, heads=2, draws=10, runs=0, want=0.0, seed=4, "
                       f"page={str(page)!r})")
    page.unlink()
    eval(command)
    assert page.read_bytes() == before


def test_ctrl_c_leaves_the_page_of_the_counts_so_far(tmp_path):
    page = tmp_path / "sizes.html"
    stop = interrupted(lambda: attsvm.capacity(8, 2, 4, draws=10**7, page=page, progress=True),
                       lambda work, *_: work == "draws")
    data = json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])
    counted = stop.result.separable
    assert not data["complete"] and data["separable"] == (counted and dataclasses.asdict(counted))


def test_the_device_makes_no_difference():
    one, two = (attsvm.capacity(6, 4, 4, draws=10, runs=10, want=0, device=on) for on in ("auto", "cpu"))
    assert one.to_dict() == two.to_dict()
    with pytest.raises(ValueError, match="device"):
        attsvm.capacity(6, 4, 4, device="gpu")
