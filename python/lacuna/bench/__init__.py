"""What measures, and compares: copies, messages, MPIs, methods, a GPU, and the choice itself.

Each folder is a case: what runs (client), what it comes to (rows), and what of it is shown (page, picture).
"""
