"""`python -m cluster_gw`: the same as the command `cluster-gw`."""

from cluster_gw.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
