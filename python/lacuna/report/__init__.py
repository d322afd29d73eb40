"""What a reader sees of a run: tables on the terminal, pages and pictures.

html, style, palette and row_tables are the means; the other modules show a guide, or two of them side by side.
"""
