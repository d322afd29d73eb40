"""The guide: which cells to measure, the campaign that measures them, the contests that they are, and the profile that
is fitted to them.

plan ──▶ campaign ──▶ run_record ──▶ contests ──▶ rules        which way is best where
                          └──▶ fitting ──▶ calibration         the prices by which the library chooses
"""
