"""Who trains, and how a training goes on when machines come and go."""
