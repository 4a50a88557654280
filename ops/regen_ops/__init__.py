"""What people type to see and steer a run."""
