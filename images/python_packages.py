# Lets cells import what pip has installed meanwhile. Python looks for the folder of a user's packages when it starts, and no more.
import importlib
import importlib.machinery
import os
import site
import sys


class LateUserPackages:
    # Stands behind all others that look for modules, so that only a module that is missing costs anything.
    @staticmethod
    def find_spec(name, path=None, target=None):
        folder = site.getusersitepackages()
        if path is not None or folder in sys.path or not os.path.isdir(folder):
            return None
        site.addsitedir(folder)
        importlib.invalidate_caches()
        return importlib.machinery.PathFinder.find_spec(name)


def find_packages_installed_later():
    if os.environ.get("PIP_USER") == "1":
        sys.meta_path.append(LateUserPackages)
