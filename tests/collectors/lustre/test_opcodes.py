import pytest

from collectors.lustre import opcodes


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        (0, "OST_REPLY"),
        (35, "MDS_CLOSE"),
        (101, "LDLM_ENQUEUE"),
        (400, "OBD_PING"),
        (1102, "LFSCK_QUERY"),
        (9999, "9999"),
        (-1, "-1"),
    ],
)
def test_opcodes_have_names_and_unknown_opcodes_numbers(opcode, name):
    assert opcodes.name_of(opcode) == name
