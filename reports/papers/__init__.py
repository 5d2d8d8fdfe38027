"""The five papers: what each prints and claims, beside what the studies of this project measured.

The published side is data, a TOML file for each paper in ``studies/published``. Importing this
package is light.
"""
