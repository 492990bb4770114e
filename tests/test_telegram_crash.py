"""Over Telegram: nothing lost, nothing twice, nothing in the wrong chat, however often the gateway is killed."""

from pathlib import Path

import pytest

from worlds.telegram_storm import weather_a_telegram_storm

pytestmark = pytest.mark.crash

KILLS = 9
SEED = 20271201


async def test_twenty_chats_are_answered_once_in_order_and_where_they_asked(tmp_path: Path) -> None:
    await weather_a_telegram_storm(tmp_path, kills=KILLS, seed=SEED)
