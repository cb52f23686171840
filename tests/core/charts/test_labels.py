from ioportal.core.charts.labels import plotly_text


def test_markup_and_control_characters_are_escaped():
    assert plotly_text("<b>a\u202eb\n</b>") == "&lt;b>a\\u202eb\\n&lt;/b>"
