"""Prints the report."""
import runpy

runpy.run_path("report.py", run_name="__main__")
