"""RDMA devices and providers of libfabric that the fake worker makes up."""

from __future__ import annotations


def devices() -> dict[str, object]:
    """One of each kind."""
    limits = {
        "max_sge": 32,
        "max_sge_rd": 32,
        "max_inline": 512,
        "max_send_wr": 4096,
        "max_cqe": 32767,
        "max_message_bytes": 8 << 20,
        "indirect_keys": 0,
        "indirect_entries": 0,
    }
    port = {"number": 1, "state": "active", "link_layer": "Ethernet", "active_mtu": 4096, "max_mtu": 4096, "lid": 0}
    soft: dict[str, object] = {
        "nic": "verbs:rxe0",
        "driver": "",
        "firmware": "",
        "emulated": True,
        "refusal": "",
        "connection": "port 1: RoCE, GID 1 (::ffff:10.77.0.1), MTU 4096",
        "advertised": {**limits, "max_sge": 30},
        "probed": limits,
        "no_umr": "rxe0 is no mlx5 device",
        "windows": "1, 2B",
        "on_demand_paging": False,
        "ports": [port],
    }
    keys = {**limits, "indirect_keys": 1000, "indirect_entries": 64}
    real = {
        **soft,
        "nic": "verbs:mlx5_0",
        "driver": "mlx5_core",
        "emulated": False,
        "probed": keys,
        "no_umr": "",
        "windows": "1",
        "on_demand_paging": True,
    }
    down = {**soft, "nic": "verbs:mlx5_1", "emulated": False, "refusal": "no port of mlx5_1 is up"}
    return {"none": "", "list": [soft, real, down]}


def providers() -> dict[str, object]:
    """One that can be used, one without order, and one that cannot."""
    limits = {
        "max_sge": 4,
        "max_sge_rd": 4,
        "max_inline": 128,
        "max_send_wr": 1024,
        "max_cqe": 65536,
        "max_message_bytes": 2 << 30,
        "indirect_keys": 0,
        "indirect_entries": 0,
    }
    tcp: dict[str, object] = {
        "nic": "ofi:tcp",
        "emulated": True,
        "connected": True,
        "ordered": True,
        "refusal": "",
        "limits": limits,
    }
    loose = {**tcp, "nic": "ofi:loose", "emulated": False, "connected": False, "ordered": False}
    refused = {**tcp, "nic": "ofi:efa", "refusal": "its completions carry 4 bytes"}
    return {"none": "", "list": [tcp, loose, refused]}
