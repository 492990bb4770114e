"""Suites of promises that every implementation of a port keeps."""
