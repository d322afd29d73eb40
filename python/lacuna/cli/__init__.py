"""The `lacuna` command: options, help and exit statuses; what a command does is in the other rooms."""
