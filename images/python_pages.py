# Shows what IPython would give a pager, as of "len?", with the cell's outputs. A client of ours has no pager.
from IPython.core import page


def show_pages(shell):
    shell.set_hook("show_in_pager", page.as_hook(page.display_page), 1)
