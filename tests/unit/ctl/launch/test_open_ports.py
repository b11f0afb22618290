import pytest

from jupiterd.ctl.launch.options.ports import open_ports_of
from jupiterd.errors import UsageError
from jupiterd.processes.script_plan import MAX_OPEN_PORTS, PortRange


def test_a_port_and_a_range_of_ports_are_read():
    assert open_ports_of(["6006", "8000-8010"]) == (PortRange(6006, 6006), PortRange(8000, 8010))
    assert 8010 in PortRange(8000, 8010)
    assert 8011 not in PortRange(8000, 8010)


@pytest.mark.parametrize("bad", ["", "0", "x", "80-", "90-80", "65536", "1-65536", "-1", "8_0"])
def test_what_is_no_port_is_refused(bad: str):
    with pytest.raises(UsageError):
        open_ports_of([bad])


def test_more_than_an_order_may_name_are_refused():
    with pytest.raises(UsageError):
        open_ports_of(["80"] * (MAX_OPEN_PORTS + 1))
