"""The studies that ship with marginbench, one TOML file each."""
