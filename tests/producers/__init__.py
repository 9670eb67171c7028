"""What each producer wakes, for what reason, and under which key."""
