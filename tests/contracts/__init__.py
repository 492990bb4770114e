"""Suites of promises that every implementation of a port keeps."""

import pytest

pytest.register_assert_rewrite("contracts.adapter", "contracts.model", "contracts.store")
