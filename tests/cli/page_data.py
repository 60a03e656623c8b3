"""The data inside a page."""

import json
import pathlib
import re

import jsonschema

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs" / "page.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def data_of(page):
    """The data inside a page, which must be what the schema says."""
    html = page.read_text(encoding="utf-8")
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert len(found) == 1
    data = json.loads(found[0])
    VALIDATOR.validate(data)
    return data
