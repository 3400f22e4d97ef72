"""From a job to a checked, built program and its data as rows, within the memory there is."""
