"""`lacuna bench device`: copies of GPU memory against torch, CuPy and CUDA."""
