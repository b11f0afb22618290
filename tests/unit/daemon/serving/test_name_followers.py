"""Which names of an endpoint follow promotions."""

import asyncio
from pathlib import Path

from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.name_followers import NameFollowers
from jupiterd.daemon.serving.promotion_follower import FollowedName, PromotionFollower


async def test_a_folder_that_an_endpoint_lists_is_the_folder_to_whoever_names_its_path(
    tmp_path: Path,
):
    folder = ServedModel(str(tmp_path), None, str(tmp_path))

    def never(_: FollowedName) -> PromotionFollower:
        raise AssertionError("no name of the ledger was to be followed")

    async with asyncio.TaskGroup() as group:
        followers = NameFollowers(never, group)
        followers.serve([str(tmp_path)])
        assert await followers.meant(folder) == folder
