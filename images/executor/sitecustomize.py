"""What each Python of the image does first, a kernel's and those that it starts."""


def _copy_font_cache(source="/usr/share/cellblock/matplotlib"):
    """Gives the kernel the font cache that was made when the image was built.

    Matplotlib reads its font cache from MPLCONFIGDIR only when it may also write there, and a kernel's root is read-only:
    so the cache is copied (100 KB) into the kernel's own folder when its first Python starts.
    """
    import os

    target = os.environ.get("MPLCONFIGDIR")
    if not target or target == source or os.path.exists(target):
        return
    try:
        names = os.listdir(source)
        os.makedirs(target, 0o700)
        for name in names:
            with open(os.path.join(source, name), "rb") as src, open(os.path.join(target, name), "wb") as dst:
                dst.write(src.read())
    except OSError:
        pass  # without the cache the first plot is slow, nothing worse


def _write_lines_at_once():
    """Lets a program that prints to a cell be heard while the cell runs.

    What cells' programs print goes through a pipe, and into one Python writes when it has 8 KB, or ends. The workers of
    joblib end minutes after their cell has.
    """
    import os
    import sys

    try:
        pipe = os.fstat(1)
        if os.environ.get("KERNEL_OUTPUT") == f"{pipe.st_dev}:{pipe.st_ino}":
            sys.stdout.reconfigure(line_buffering=True)
    except (OSError, AttributeError):
        pass  # it has no stdout


_copy_font_cache()
_write_lines_at_once()
del _copy_font_cache, _write_lines_at_once
