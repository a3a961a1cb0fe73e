"""What people are shown, whatever shows it: words, differences, plots, HTML. Shared by all front ends."""
