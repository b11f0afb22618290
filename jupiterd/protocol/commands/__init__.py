"""Every command that people or programs give, one frozen dataclass for each verb."""
