"""The six layers; each knows data sets only, never another layer."""
