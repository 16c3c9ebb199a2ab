"""Gives each kernel the font cache that was made when the image was built.

Matplotlib reads its font cache from MPLCONFIGDIR only when it may also write there, and a kernel's root is read-only:
so the cache is copied (100 KB) into the kernel's own folder when its first Python starts.
"""


def _copy_font_cache(source="/usr/share/cellblock/matplotlib"):
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


_copy_font_cache()
del _copy_font_cache
