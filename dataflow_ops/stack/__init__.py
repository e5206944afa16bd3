"""The platform as processes of one machine, or as containers: the same components, from one settings file."""
