"""stage.checks: what may be wrong with a stage, as a table of small checks; `stage.checks.run` runs them. No device, no Warp."""
