"""``python -m pairlens`` is the command ``pairlens``: for environments whose scripts are not on the path."""

from pairlens.cli import main

if __name__ == "__main__":
    main()
