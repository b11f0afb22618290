"""The cluster's pure cores among many nodes, in virtual time, on a bad network and bad disks.

Real: `presence`, `failure_detector`, `election`, `ledger`, `state`, `entry`, `snapshot`.
Imitated: what the asyncio shells of the daemon do around them (`process`, `anti_entropy`), with
signatures that are hashes. Nothing sleeps, every random choice comes from the seed, and a failing
seed says its number.
"""
