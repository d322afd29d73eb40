"""The findings of the papers behind Lacuna, reproduced on a modelled NIC: `lacuna paper`."""
