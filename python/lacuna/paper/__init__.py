"""The founding documents' findings, reproduced on a modelled NIC: `lacuna paper`."""
