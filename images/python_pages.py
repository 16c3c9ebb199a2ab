# Shows what IPython would give a pager, as of "len?", or put into the next cell, as "%load" does, with the cell's outputs. A client of
# ours has neither.
from IPython.core import page


def show_pages(shell):
    shell.set_hook("show_in_pager", page.as_hook(page.display_page), 1)
    shell.set_next_input = lambda text, replace=False: print(text)
