"""Weighing evidence: how much of what each piece says is to be believed."""
