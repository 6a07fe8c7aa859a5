"""Tests of a live service.

A package, so that the service which its tests share ends with the last of them.
"""
