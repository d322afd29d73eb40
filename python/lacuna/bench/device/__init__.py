"""`lacuna bench device`: copies of GPU memory against torch, CuPy and CUDA."""

HELP = """
Measure copies between layouts of GPU memory against torch, CuPy, CUDA's own copies and a plain kernel.

Every row is verified, and shown as a share of its limit: the time of a contiguous copy of as many bytes as the
memory has to move. Torch and CuPy take part where they are installed and can express the layout.

\b
Examples:
  lacuna bench device --output results/h100
  lacuna bench device --groups transposes,ai
  lacuna bench device --from results --output results/h200

"""
