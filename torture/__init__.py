"""What runs for days must survive anything: kills, damage, full disks, mistakes; all counted."""
