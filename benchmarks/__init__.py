"""What lapwing claims, measured: `make bench`. Speeds are ratios within one run, on one core."""
