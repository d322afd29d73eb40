"""`python -m lacuna` is the `lacuna` command."""

from lacuna.cli.app import main

if __name__ == "__main__":
    main()
