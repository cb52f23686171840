"""Jobs and their batch systems: submission, scheduling, launches, and jobs inside jobs."""
