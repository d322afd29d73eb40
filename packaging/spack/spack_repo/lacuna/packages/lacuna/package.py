"""Spack's recipe of Lacuna's C and C++ library and of the interposer for MPI programs: docs/guide/clusters.md."""

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Lacuna(CMakePackage):
    """Moves data with gaps between processes by the fastest way that the machine offers. The C and C++ library, and
    liblacuna_mpi_*.so, which are preloaded to make the datatypes of unmodified MPI programs faster."""

    # There is no release to fetch yet: the sources come from a checkout, as in docs/guide/clusters.md.
    version("0.2.0")

    license("BSD-3-Clause")

    variant("shared", default=True, description="Build a shared library")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("fmt@9:")
    depends_on("highway@1.0.3:", type="build")  # headers
    depends_on("libsodium@1.0.18:")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("xxhash@0.8.1:", type="build")
    depends_on("libfabric", type="build")  # headers; the library is loaded where a provider is asked for
    depends_on("rdma-core", type="build")  # a header; the library is loaded where there is a device

    requires("%gcc@12:", "%clang@16:", policy="one_of", msg="Lacuna is written in C++23")
    requires("platform=linux", msg="Lacuna takes memfd, process_vm_readv and abstract sockets")

    def cmake_args(self):
        return [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define("LACUNA_SELF_CONTAINED", False),  # with the fmt and the libsodium of Spack
            self.define("LACUNA_TESTS", False),
            self.define("LACUNA_BENCH", False),
            self.define("LACUNA_EXAMPLES", False),
            self.define("LACUNA_PYTHON", False),
            self.define("LACUNA_CUDA", "OFF"),
        ]

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        # Where `lacuna mpirun` and job scripts find the libraries to preload.
        env.set("LACUNA_MPI_LIB_DIR", self.prefix.lib)
