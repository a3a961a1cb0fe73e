"""What the commands share: options, output, progress bars, signals."""
